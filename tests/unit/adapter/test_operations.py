"""What each tool asks of the daemon, and what it makes of the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbus.config import Settings
from agentbus.errors import NotFound
from tests.support.adapter_world import envelope, memory


def size(result: Any) -> int:
    return len(json.dumps(result, separators=(",", ":"), ensure_ascii=False).encode())


def asked(world, method: str) -> dict[str, Any]:
    """The params of the last request, without the attachment."""
    params = dict(world.asked(method)[-1])
    assert params.pop("attachment") == "1.1"
    return params


# memories


def test_a_memory_is_got_as_a_message(world):
    world.answers["memory.get"] = {"message": memory(1, "roses", 3)}
    assert world.now_result("memory_get", memory_id="k1") == memory(1, "roses", 3)
    assert asked(world, "memory.get") == {"memory_id": "k1"}


def test_a_large_memory_is_cut_visibly(world):
    world.answers["memory.get"] = {"message": memory(1, "x" * 50_000)}
    result = world.now_result("memory_get", memory_id="k1")
    assert (result["content_truncated"], result["content_length"]) == (True, 50_000)
    assert size(result) <= 28 * 1024


EDITED = {"memory_id": "k1", "revision": 3, "replaced_revision": 2, "duplicate": False}


def test_an_edit_says_what_it_replaced_and_keeps_what_is_left_out(world):
    world.answers["memory.edit"] = EDITED
    assert world.now_result("memory_edit", memory_id="k1", content="blue") == EDITED
    params = asked(world, "memory.edit")
    assert len(params.pop("operation_id")) == 32
    assert params == {"memory_id": "k1", "content": "blue"}


def test_an_edit_may_clear_what_there_is(world):
    world.answers["memory.edit"] = EDITED
    empty = {"type": "", "metadata": {}, "references": []}
    world.now_result("memory_edit", memory_id="k1", content="", operation_id="mine", **empty)
    assert asked(world, "memory.edit") == {
        "memory_id": "k1",
        "content": "",
        "operation_id": "mine",
        **empty,
    }


def test_an_edit_with_references_that_are_none_is_told_so(world):
    bad = [{"kind": "ftp", "value": "x"}]
    error = world.now_result("memory_edit", memory_id="k1", content="", references=bad)["error"]
    assert error["code"] == "invalid_argument"
    assert world.asked("memory.edit") == []


def test_a_deletion_is_one_operation_however_often_it_is_tried(world):
    answer = {"memory_id": "k1", "deleted_revision": 2, "duplicate": False}
    world.answers["memory.delete"] = None
    identifier = world.call("memory_delete", memory_id="k1")
    world.lose()
    world.answers["memory.delete"] = answer
    world.pass_time(1)
    assert world.result(identifier) == answer
    first, second = (params["operation_id"] for params in world.asked("memory.delete"))
    assert first == second


def test_an_unknown_memory_is_told(world):
    world.answers["memory.get"] = NotFound("no such memory")
    assert world.now_result("memory_get", memory_id="x")["error"]["code"] == "not_found"


# pages


def page(name: str, item: Any, *, count: int = 40) -> Any:
    """A daemon that has so many, and pages as it is asked to."""

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        start = int(params.get("cursor") or 0)
        end = min(start + params.get("limit", 100), count)
        found = {name: [item(number) for number in range(start, end)]}
        return found | ({"next_cursor": str(end)} if end < count else {})

    return answer


def listed(number: int) -> dict[str, Any]:
    return memory(number, "x" * 900)


def hit(number: int) -> dict[str, Any]:
    return {"message": listed(number), "snippet": f"hit {number}"}


def channel(number: int) -> dict[str, Any]:
    name = f"{number:03}" + "c" * 125
    return {"name": name, "kind": "ordinary", "messages": 1, "subscribed": False}


@pytest.mark.parametrize(
    ("tool", "arguments", "method", "name", "item"),
    [
        ("memory_list", {"channel": "memory"}, "memory.list", "memories", listed),
        ("search", {"query": "x"}, "search", "results", hit),
        ("list_channels", {}, "channel.list", "channels", channel),
    ],
)
def test_pages_stay_within_the_ceiling_and_go_on_without_a_hole(
    make_world, tool, arguments, method, name, item
):
    world = make_world(Settings(result_default_kib=4))
    world.answers[method] = page(name, item)
    seen: list[Any] = []
    cursor: dict[str, Any] = {}
    while True:
        result = world.now_result(tool, **arguments, **cursor)
        assert size(result) <= 4096
        assert result[name]
        seen += result[name]
        if "next_cursor" not in result:
            break
        cursor = {"cursor": result["next_cursor"]}
    assert len(seen) == 40
    keys = [each.get("message_id") or each["name"] for each in seen]
    assert len(set(keys)) == 40


@pytest.fixture
def make_world(make):
    return lambda settings: make(settings).begin().greet()


@pytest.mark.parametrize(
    ("tool", "arguments", "method", "name", "item"),
    [
        ("memory_list", {"channel": "m"}, "memory.list", "memories", memory(1, "x" * 9000)),
        (
            "search",
            {},
            "search",
            "results",
            {"message": envelope(1, "x" * 9000), "snippet": "xxx"},
        ),
    ],
)
def test_an_item_that_is_larger_alone_comes_alone_and_cut(
    make_world, tool, arguments, method, name, item
):
    world = make_world(Settings(result_default_kib=4))
    world.answers[method] = lambda params: {name: [item] * min(2, params.get("limit", 100))}
    result = world.now_result(tool, **arguments)
    assert size(result) <= 4096
    (shown,) = result[name]
    assert (shown["content_truncated"], shown["content_length"]) == (True, 9000)
    assert shown.get("snippet") == item.get("snippet")


def test_the_daemon_is_told_how_much_there_is_room_for(make_world):
    world = make_world(Settings(result_default_kib=8))
    world.answers["search"] = {"results": []}
    world.now_result("search", limit=5)
    assert 7000 < asked(world, "search")["max_bytes"] < 8192
    world.now_result("search", limit=1000, max_kib=64)
    assert 60_000 < asked(world, "search")["max_bytes"] < 65_536


# search, discovery


def test_a_search_passes_on_what_was_asked(world):
    world.answers["search"] = {"results": [hit(1)], "next_cursor": "c2"}
    given = {
        "query": '"exact" prefix* -not (',
        "channels": ["general", "memory"],
        "sender": "Sam",
        "since": "2026-11-01T00:00:00Z",
        "until": "2026-12-01T00:00:00Z",
        "thread": "m1",
        "reply_to": "m2",
        "kind": "memory",
        "order": "relevance",
        "limit": 7,
        "cursor": "c1",
    }
    result = world.now_result("search", **given)
    params = asked(world, "search")
    del params["max_bytes"]
    assert params == given
    assert result["next_cursor"] == "c2"
    assert result["results"] == [listed(1) | {"snippet": "hit 1"}]


def test_discovery_shows_agents_and_says_if_it_is_all(world):
    session = {
        "display_name": "Sam",
        "application": "a",
        "session": "s",
        "attached": True,
        "last_seen": "t",
    }
    world.answers["discover"] = {"agents": [{"agent": "Sam", "sessions": [session]}]}
    assert world.now_result("discover", agent="Sam") == {
        "agents": [{"agent": "Sam", "sessions": [session]}],
        "more": False,
    }
    assert asked(world, "discover") == {"agent": "Sam"}


# reading


def test_a_message_is_read_to_its_end(make_world):
    world = make_world(Settings(result_default_kib=4))
    content = "\U0001f600 line\n" * 3000
    world.answers["read"] = {"message": envelope(1, content)}
    read, offset, calls = "", 0, 0
    while True:
        result = world.now_result("read", message_id="m1", offset=offset)
        assert size(result) <= 4096
        assert result["content_length"] == len(content)
        read += result["content"]
        calls += 1
        if "next_offset" not in result:
            break
        offset = result["next_offset"]
    assert read == content
    assert calls < 30
    assert asked(world, "read") == {"message_id": "m1"}


def test_a_short_message_is_read_whole(world):
    world.answers["read"] = {"message": envelope(1, "short")}
    assert world.now_result("read", message_id="m1") == envelope(1, "short") | {"content_length": 5}


def test_an_offset_below_zero_is_refused(world):
    error = world.now_result("read", message_id="m1", offset=-1)["error"]
    assert error["code"] == "invalid_argument"


# channels


SUBSCRIBED = {
    "subscription": 7,
    "channel": "x",
    "position": 4,
    "expires_at": "2026-12-03T00:00:00.000Z",
    "created": True,
    "include_own": False,
}


def test_a_channel_that_was_subscribed_to_is_received_until_it_is_left(world):
    world.answers["subscribe"] = SUBSCRIBED
    told = world.now_result("subscribe", channel="x")
    assert told == {name: value for name, value in SUBSCRIBED.items() if name != "subscription"}
    channels = {each["channel"] for each in world.now_result("whoami")["subscriptions"]}
    assert channels == {"general", "x"}
    world.deliver("five", first=5, subscription=7, channel="x")
    world.answers["unsubscribe"] = {"channel": "x", "removed": True}
    assert world.now_result("unsubscribe", channel="x") == {"channel": "x", "removed": True}
    assert world.now_result("recv")["messages"] == []
    channels = {each["channel"] for each in world.now_result("whoami")["subscriptions"]}
    assert channels == {"general"}


def test_subscribing_to_what_has_expired_says_from_where_and_it_is_not_told_again(world):
    expired = [{"channel": "general", "position": 3}]
    world.deliver(through=3, messages=[], expired=expired)
    world.answers["subscribe"] = SUBSCRIBED | {"channel": "general", "expired_from": 3}
    assert world.now_result("subscribe", channel="general")["expired_from"] == 3
    assert world.now_result("recv")["expired"] == []


@pytest.mark.parametrize(
    ("given", "asked_for"),
    [
        ({}, {}),
        ({"before": 10**18}, {"before": 2**53 - 1}),
        ({"after": 3.0, "limit": 5}, {"after": 3, "limit": 5}),
    ],
)
def test_history_is_asked_for_by_positions(world, given, asked_for):
    world.answers["history"] = {"messages": [envelope(1, "x")], "more": True}
    result = world.now_result("history", channel="general", **given)
    assert result == {"messages": [envelope(1, "x")], "more": True}
    params = asked(world, "history")
    del params["max_bytes"]
    assert params == {"channel": "general"} | asked_for


def test_a_channel_is_created(world):
    answer = {"channel": "x", "kind": "memory", "created": True}
    world.answers["channel.create"] = answer
    assert world.now_result("create_channel", name="x", kind="memory") == answer
    assert asked(world, "channel.create") == {"name": "x", "kind": "memory"}


# ids


def test_ids_of_operations_are_in_the_order_of_time(make_world):
    world = make_world(Settings())
    for _ in range(3):
        world.now_result("send", channel="general", content="x")
        world.pass_time(1)
    ids = [params["message_id"] for params in world.asked("send")]
    assert ids == sorted(ids)
    assert len(set(ids)) == 3
