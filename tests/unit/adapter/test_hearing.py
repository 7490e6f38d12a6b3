"""What the adapter does with notices, changed memories, new epochs and another bus."""

from __future__ import annotations

import json

import pytest

from agentbus.adapter.events import StdinData
from agentbus.config import Settings
from agentbus.errors import Recovering
from tests.support.adapter_world import envelope, memory


def contents(result) -> list[str]:
    return [each["content"] for each in result["messages"]]


# notices


def test_a_notice_ends_a_waiting_recv(world):
    identifier = world.call("recv", wait_seconds=50)
    world.notice("memory_deleted", memory_id="k1", revision=3)
    assert world.result(identifier) == {
        "messages": [],
        "gaps": [],
        "expired": [],
        "notices": [
            {"kind": "memory_deleted", "channel": "memory", "memory_id": "k1", "revision": 3}
        ],
        "dropped_notices": 0,
        "more": False,
    }
    assert world.asked("delivered") == []


def test_notices_come_beside_messages(world):
    world.deliver("one")
    world.notice("memory_changed", memory_id="k1", revision=2, message=memory(1, "new", 2))
    world.notice("capacity", text="nearly full")
    result = world.now_result("recv")
    assert contents(result) == ["one"]
    assert [each["kind"] for each in result["notices"]] == ["memory_changed", "capacity"]
    assert result["notices"][0]["message"]["content"] == "new"


def test_what_was_dropped_is_told_once(world):
    for number in range(70):
        world.notice("memory_deleted", memory_id=f"k{number}")
    result = world.now_result("recv")
    assert (len(result["notices"]), result["dropped_notices"]) == (64, 6)
    assert world.now_result("recv")["dropped_notices"] == 0


def test_notices_of_a_cancelled_recv_come_again(world):
    world.blocked = True
    world.notice("capacity", text="nearly full")
    identifier = world.call("recv")
    world.feed("notifications/cancelled", requestId=identifier)
    world.blocked = False
    assert len(world.now_result("recv")["notices"]) == 1


def test_notices_leave_room_for_messages_and_messages_for_notices(make):
    world = make(Settings(result_default_kib=8)).begin().greet()
    world.deliver(*["x" * 3000] * 4)
    for number in range(4):
        message = memory(number, "y" * 1500)
        world.notice("memory_changed", memory_id=f"k{number}", revision=2, message=message)
    result = world.now_result("recv")
    assert len(json.dumps(result, separators=(",", ":"))) <= 8192
    assert result["messages"]
    assert result["notices"]
    assert result["more"]


def test_a_large_notice_comes_alone_and_visibly_cut(world):
    message = memory(1, "y" * 50_000)
    world.notice("memory_changed", memory_id="k1", revision=2, message=message)
    world.deliver("one")
    first = world.now_result("recv")
    assert contents(first) == ["one"]
    (notice,) = first["notices"]
    assert notice["message"]["content_truncated"] is True
    assert notice["message"]["content_length"] == 50_000


def test_notices_of_nobody_are_nothing(world):
    world.notice("capacity", text="x", attachment="9.9")
    assert world.now_result("recv")["notices"] == []


def test_notices_end_with_the_connection_and_count_as_dropped(world):
    world.notice("capacity", text="x")
    world.lose()
    world.pass_time(1)
    result = world.now_result("recv")
    assert (result["notices"], result["dropped_notices"]) == ([], 1)


def test_each_session_has_its_own(make):
    world = make().begin().greet("codex-mcp-client")
    who = {"threadId": "r", "sessionId": "r"}
    child = {"threadId": "c", "sessionId": "r"}
    world.call("whoami", who)
    world.notice("capacity", text="root")
    world.call("whoami", child)
    world.notice("capacity", text="child")
    for meta, text in ((who, "root"), (child, "child")):
        result = world.result(world.call("recv", meta))
        assert [each["text"] for each in result["notices"]] == [text]


# what the daemon holds back


def test_more_tells_of_what_the_daemon_has_not_pushed(world):
    world.deliver("1", behind=True)
    assert world.now_result("recv")["more"] is True
    world.deliver("2", first=2)
    assert world.now_result("recv")["more"] is False


def test_a_full_window_may_have_more_behind_it(make):
    world = make(Settings(prefetch_messages=3)).begin().greet()
    world.deliver("1", "2")
    assert world.now_result("recv")["more"] is False
    world.deliver("3", "4", "5", first=3)
    assert world.now_result("recv")["more"] is True


def test_a_window_that_was_full_may_have_more_behind_it_until_others_come(make):
    world = make(Settings(prefetch_messages=3)).begin().greet()
    world.deliver("1", "2", "3")
    world.now_result("recv", max_messages=2)
    assert world.now_result("recv")["more"] is True
    world.deliver("4", first=4)
    assert world.now_result("recv")["more"] is False


def test_a_window_full_of_bytes_may_have_more_behind_it(make):
    world = make(Settings(prefetch_mib=1)).begin().greet()
    world.deliver(*["x" * 62_000] * 16)
    assert world.now_result("recv", max_kib=4096)["more"] is True


def test_a_recv_that_found_nothing_knows_that_there_is_no_more(world):
    world.deliver("1", behind=True)
    world.now_result("recv")
    assert world.now_result("recv")["more"] is False
    world.deliver("2", first=2, behind=True)
    world.epoch = "1.1"
    world.note("epoch", epoch="1.1")
    world.deliver("1", "2")
    assert world.now_result("recv")["more"] is False


# memories that change


def test_a_buffered_memory_is_shown_as_it_is_now(world):
    world.remember("old", "other")
    world.revise(1, "new")
    (first, second) = world.now_result("recv")["messages"]
    assert (first["content"], first["revision"]) == ("new", 2)
    assert second["content"] == "other"


def test_a_deleted_memory_is_passed_over_and_reported(world):
    world.remember("old")
    world.revoke(1)
    assert world.asked("delivered")[-1]["positions"] == [[1, 1]]
    assert world.now_result("recv")["messages"] == []


def test_a_result_that_is_not_begun_is_written_anew(world):
    world.remember("old", "other")
    world.blocked = True
    identifier = world.call("recv")
    world.revise(1, "new")
    world.blocked = False
    world.write_all()
    assert contents(world.result(identifier)) == ["new", "other"]
    assert [line.get("id") for line in world.lines].count(identifier) == 1
    assert world.asked("delivered")[-1]["positions"] == [[1, 2]]


def test_a_result_of_which_nothing_is_left_waits_on(world):
    world.remember("old")
    world.blocked = True
    identifier = world.call("recv", wait_seconds=30)
    world.revoke(1)
    world.blocked = False
    world.write_all()
    assert world.result(identifier) is None
    world.pass_time(15)
    world.deliver("later", first=2)
    assert contents(world.result(identifier)) == ["later"]


def test_a_result_of_which_nothing_is_left_is_empty_when_its_time_is_over(world):
    world.remember("old")
    world.blocked = True
    identifier = world.call("recv")
    world.pass_time(40)
    world.revoke(1)
    world.blocked = False
    world.write_all()
    assert world.result(identifier)["messages"] == []


def test_several_results_that_are_taken_back_keep_their_order(world):
    world.remember("1", "2", "3")
    world.blocked = True
    first, second = (world.call("recv", max_messages=1) for _ in range(2))
    world.revise(1, "one")
    world.revise(2, "two")
    world.blocked = False
    world.write_all()
    assert contents(world.result(first)) == ["one"]
    assert contents(world.result(second)) == ["two"]


def test_a_result_that_is_begun_cannot_be_recalled(world):
    world.remember("old")
    world.blocked = True
    identifier = world.call("recv")
    begun, world.unwritten = world.unwritten, []
    world.revise(1, "new")
    world.unwritten = begun
    world.write_all()
    assert contents(world.result(identifier)) == ["old"]
    assert world.asked("delivered")[-1]["positions"] == [[1, 1]]
    world.blocked = False
    assert world.now_result("recv")["messages"] == []


def test_a_notice_in_a_result_that_is_not_begun_is_not_obsolete_when_it_is_read(world):
    world.notice("memory_changed", memory_id="k1", revision=2, message=memory(1, "two", 2))
    world.blocked = True
    identifier = world.call("recv")
    world.notice("memory_changed", memory_id="k1", revision=3, message=memory(1, "three", 3))
    world.blocked = False
    world.write_all()
    first, second = world.result(identifier)["notices"]
    assert "message" not in first
    assert second["message"]["content"] == "three"


def test_a_batch_waits_for_the_result_that_was_taken_back(make):
    world = make().begin().greet(revision="2025-03-26")
    world.remember("old")
    world.blocked = True
    calls = [
        {"jsonrpc": "2.0", "id": each, "method": "tools/call", "params": {"name": tool}}
        for each, tool in (("a", "recv"), ("b", "whoami"))
    ]
    world.event(StdinData(json.dumps(calls).encode() + b"\n"))
    world.revise(1, "new")
    world.blocked = False
    world.write_all()
    (batch,) = [line for line in world.lines if isinstance(line, list)]
    texts = {each["id"]: json.loads(each["result"]["content"][0]["text"]) for each in batch}
    assert contents(texts["a"]) == ["new"]
    assert texts["b"]["display_name"] == "Sam"


def test_a_cancelled_result_beside_one_taken_back_is_left_out(make):
    world = make().begin().greet(revision="2025-03-26")
    world.remember("old")
    world.blocked = True
    calls = [
        {"jsonrpc": "2.0", "id": each, "method": "tools/call", "params": {"name": tool}}
        for each, tool in (("b", "whoami"), ("a", "recv"))
    ]
    world.event(StdinData(json.dumps(calls).encode() + b"\n"))
    held, world.unwritten = world.unwritten, []
    world.feed("notifications/cancelled", requestId="b")
    world.unwritten = held
    world.revise(1, "new")
    world.blocked = False
    world.write_all()
    (batch,) = [line for line in world.lines if isinstance(line, list)]
    assert [each["id"] for each in batch] == ["a"]


def test_a_memory_is_not_shown_as_it_was_in_an_earlier_epoch(world):
    """Nobody tells an adapter of changes to what it took before the epoch."""
    world.remember("old")
    world.blocked = True
    identifier = world.call("recv", wait_seconds=9)
    world.epoch = "1.1"
    world.note("epoch", epoch="1.1")
    world.blocked = False
    world.write_all()
    assert world.result(identifier) is None
    world.remember("new")
    assert contents(world.result(identifier)) == ["new"]


def test_ordinary_messages_are_written_across_an_epoch(world):
    world.deliver("one")
    world.blocked = True
    identifier = world.call("recv")
    world.note("epoch", epoch="1.1")
    world.blocked = False
    world.write_all()
    assert contents(world.result(identifier)) == ["one"]


# gaps and expired cursors

GAP = {"channel": "general", "after_seq": 0, "resumed_at_seq": 4, "lost": 3}


def test_a_gap_ends_a_waiting_recv_and_is_told_once(world):
    identifier = world.call("recv", wait_seconds=50)
    world.deliver(through=3, messages=[], gaps=[GAP])
    result = world.result(identifier)
    assert (result["messages"], result["gaps"]) == ([], [GAP])
    assert world.asked("delivered")[-1]["positions"] == [[1, 3]]
    assert world.now_result("recv")["gaps"] == []


def test_an_expiry_ends_a_waiting_recv_is_acknowledged_and_the_subscription_is_gone(world):
    identifier = world.call("recv", wait_seconds=50)
    expired = [{"channel": "general", "position": 0}]
    world.deliver(through=0, messages=[], expired=expired)
    assert world.result(identifier)["expired"] == expired
    assert world.asked("delivered")[-1]["positions"] == [[1, 0]]
    assert world.now_result("whoami")["subscriptions"] == []


# another bus


def test_whoever_is_registered_when_the_bus_turns_out_to_be_another_registers_anew(make):
    """The gateway lived on while the bus behind it was replaced."""
    world = make().begin().greet("codex-mcp-client")
    world.answers["delivered"] = None
    root = {"threadId": "r", "sessionId": "r"}
    world.call("whoami", root)
    world.deliver("old")
    world.call("recv", root)
    world.answers["register"] = lambda params: world._register(params) | {"instance": "new"}
    told = world.result(world.call("whoami", {"threadId": "c", "sessionId": "r"}))
    assert told["child"] == "c"
    registered = [each.get("child") for each in world.asked("register")]
    assert registered == [None, "c", None]
    assert len(world.asked("delivered")) == 1
    world.answer(next(each[0] for each in world.held if each[1] == "delivered"), {})
    world.deliver("new")
    assert contents(world.result(world.call("recv", root))) == ["new"]


def reset(world) -> None:
    world.answers["hello"] = {"protocol": 1, "version": "0", "instance": "new", "state": "ready"}
    world.lose()
    world.pass_time(1)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("send", {"channel": "general", "content": "x"}),
        ("memory_edit", {"memory_id": "k", "content": "x"}),
        ("memory_delete", {"memory_id": "k"}),
        ("search", {"query": "x"}),
    ],
)
def test_what_was_asked_of_a_bus_that_was_reset_is_not_asked_of_the_new_one(world, tool, arguments):
    world.answers["send"] = None
    identifier = world.call(tool, **arguments)
    before = len(world.requests)
    reset(world)
    error = world.result(identifier)["error"]
    assert (error["code"], error["retryable"]) == ("unavailable", True)
    assert "reset" in error["message"]
    later = [method for method, _ in world.requests[before:]]
    assert later == ["hello", "register"]


def test_what_was_refused_for_the_moment_by_the_old_bus_is_not_tried_on_the_new_one(world):
    world.answers["send"] = Recovering("not yet")
    identifier = world.call("send", channel="general", content="x")
    reset(world)
    assert "reset" in world.result(identifier)["error"]["message"]


def test_what_no_bus_was_asked_yet_is_asked_of_the_new_one(world):
    world.lose(running=False)
    world.silent_start = True
    identifier = world.call("send", channel="general", content="x")
    world.pass_time(1)
    world.answers["hello"] = {"protocol": 1, "version": "0", "instance": "new", "state": "ready"}
    world.running = True
    world.pass_time(70)
    assert world.result(identifier) is not None
    assert len(world.asked("send")) <= 1


def test_sessions_register_anew_with_what_they_have_there(world):
    world.deliver("old")
    world.answers["register"] = lambda params: (
        world._register(params)
        | {
            "subscriptions": [
                {
                    "subscription": 1,
                    "channel": "memory",
                    "position": 5,
                    "expires_at": "t",
                    "include_own": False,
                }
            ],
            "instance": "new",
        }
    )
    world.answers["renew"] = None
    reset(world)
    (subscription,) = world.now_result("whoami")["subscriptions"]
    assert (subscription["channel"], subscription["position"]) == ("memory", 5)
    world.deliver("new", first=6)
    assert contents(world.now_result("recv")) == ["new"]
    assert world.asked("delivered")[-1]["positions"] == [[1, 6]]


def test_a_result_of_the_old_bus_that_is_not_begun_is_not_written(world):
    world.deliver("old")
    world.blocked = True
    identifier = world.call("recv", wait_seconds=30)
    reset(world)
    world.blocked = False
    world.write_all()
    assert world.result(identifier) is None
    assert world.asked("delivered") == []
    world.deliver("new")
    assert contents(world.result(identifier)) == ["new"]


def test_a_result_of_the_old_bus_that_is_begun_acknowledges_nothing_on_the_new_one(world):
    world.deliver("old")
    world.blocked = True
    world.call("recv")
    begun, world.unwritten = world.unwritten, []
    reset(world)
    world.unwritten = begun
    world.write_all()
    assert world.asked("delivered") == []
    world.blocked = False
    world.deliver("new")
    assert contents(world.now_result("recv")) == ["new"]


def test_a_bus_that_is_found_to_be_another_at_registration_is_another_too(world):
    world.deliver("old")
    world.answers["send"] = None
    identifier = world.call("send", channel="general", content="x")
    world.answers["hello"] = {"protocol": 1, "version": "0", "instance": "", "state": "starting"}
    world.answers["register"] = lambda params: world._register(params) | {"instance": "new"}
    world.lose()
    world.pass_time(1)
    assert "reset" in world.result(identifier)["error"]["message"]
    assert world.now_result("recv")["messages"] == []


def test_the_same_bus_is_not_taken_for_another(world):
    world.deliver("one")
    world.answers["register"] = lambda params: world._register(params) | {"instance": "i"}
    world.lose()
    world.pass_time(1)
    world.deliver("one")
    assert contents(world.now_result("recv")) == ["one"]


def test_own_and_others_are_told_apart_by_the_daemon_alone(world):
    world.deliver(through=3, messages=[envelope(2, "theirs")])
    assert contents(world.now_result("recv")) == ["theirs"]
    assert world.asked("delivered")[-1]["positions"] == [[1, 3]]
