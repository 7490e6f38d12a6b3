"""The inbox as a resource: counts on request, and word of their changes to whoever listens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbus.errors import Recovering, Unavailable

URI = "agentbus://inbox"

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}

COUNTS = {
    "channels": [
        {"channel": "general", "undelivered": 2, "oldest_at": "2026-11-30T00:00:00.000Z"},
        {"channel": "memory", "undelivered": 0},
    ]
}


@pytest.fixture
def counting(world):
    world.answers["inbox"] = COUNTS
    return world


def reply(world, identifier: Any) -> dict[str, Any] | None:
    return next((line for line in world.lines if line.get("id") == identifier), None)


def read(world, identifier: Any = "r") -> None:
    world.feed("resources/read", identifier, uri=URI)


def document(world, identifier: Any = "r") -> dict[str, Any]:
    (contents,) = reply(world, identifier)["result"]["contents"]
    assert (contents["uri"], contents["mimeType"]) == (URI, "application/json")
    return json.loads(contents["text"])


def updates(world) -> list[dict[str, Any]]:
    return [
        line["params"]
        for line in world.lines
        if line.get("method") == "notifications/resources/updated"
    ]


def changed(world, attachment: str | None = None) -> None:
    world.note("inbox", attachment=attachment or world.attachments[-1])


# reading


def test_what_waits_is_told_by_channel(counting):
    read(counting)
    assert document(counting) == {"undelivered": 2} | COUNTS
    assert counting.asked("inbox") == [{"attachment": "1.1"}]


def test_what_was_handed_off_is_not_counted(counting):
    counting.answers["delivered"] = None
    counting.deliver("one")
    counting.now_result("recv")
    read(counting)
    assert counting.asked("inbox") == []
    counting.answer(counting.held[-1][0], {})
    assert document(counting)["undelivered"] == 2


def test_a_read_that_cannot_be_answered_at_once_is_tried_again(counting):
    busy = [Recovering("not yet"), Unavailable("nor yet")]
    counting.answers["inbox"] = lambda _: busy.pop() if busy else COUNTS
    read(counting)
    counting.pass_time(1)
    assert document(counting)["undelivered"] == 2


def test_a_read_that_fails_is_an_error_with_the_code(counting):
    counting.answers["inbox"] = Recovering("not yet")
    read(counting)
    counting.pass_time(31)
    error = reply(counting, "r")["error"]
    assert (error["code"], error["data"]["code"]) == (-32603, "recovering")


def test_a_read_can_be_cancelled(counting):
    counting.answers["inbox"] = None
    read(counting)
    counting.feed("notifications/cancelled", requestId="r")
    counting.answer(counting.held[-1][0], COUNTS)
    assert reply(counting, "r") is None


def test_counts_are_those_of_the_root_also_beside_a_child(make):
    world = make().begin().greet("codex-mcp-client")
    world.answers["inbox"] = COUNTS
    world.call("whoami", {"threadId": "r", "sessionId": "r"})
    world.call("whoami", {"threadId": "c", "sessionId": "r"})
    read(world)
    assert world.asked("inbox") == [{"attachment": "1.1"}]


# changes


def subscribe(world) -> None:
    world.feed("resources/subscribe", "s", uri=URI)
    assert reply(world, "s")["result"] == {}


def test_nobody_is_told_who_does_not_listen(world):
    changed(world)
    world.pass_time(1)
    subscribe(world)
    assert updates(world) == []


def test_whoever_has_subscribed_is_told_of_changes(world):
    subscribe(world)
    changed(world)
    assert updates(world) == [{"uri": URI}]
    world.feed("resources/unsubscribe", "u", uri=URI)
    world.pass_time(1)
    changed(world)
    assert len(updates(world)) == 1


def test_whoever_listens_in_the_modern_era_is_told_until_the_end(world):
    filters = {"resourceSubscriptions": [URI], "toolsListChanged": True}
    world.feed("subscriptions/listen", "l", notifications=filters, _meta=MODERN)
    acknowledged = world.lines[-1]
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": [URI]}
    changed(world)
    marked = {"io.modelcontextprotocol/subscriptionId": "l"}
    assert updates(world) == [{"uri": URI, "_meta": marked}]
    world.feed("notifications/cancelled", requestId="l")
    world.pass_time(1)
    changed(world)
    assert len(updates(world)) == 1


def test_changes_that_follow_each_other_are_told_together(world):
    subscribe(world)
    for _ in range(50):
        changed(world)
    assert len(updates(world)) == 1
    world.pass_time(1)
    assert len(updates(world)) == 2
    world.pass_time(5)
    assert len(updates(world)) == 2


def test_a_client_that_does_not_read_is_told_once_when_it_does(world):
    subscribe(world)
    world.blocked = True
    for _ in range(20):
        changed(world)
        world.pass_time(1)
    assert len(world.unwritten) == 1
    world.blocked = False
    world.write_all()
    world.pass_time(1)
    assert len(updates(world)) == 2


def test_changes_of_others_sessions_are_not_told(make):
    world = make().begin().greet("codex-mcp-client")
    world.call("whoami", {"threadId": "r", "sessionId": "r"})
    world.call("whoami", {"threadId": "c", "sessionId": "r"})
    subscribe(world)
    changed(world, "1.2")
    changed(world, "9.9")
    assert updates(world) == []
    changed(world, "1.1")
    assert len(updates(world)) == 1


def test_another_session_or_connection_is_a_change(world):
    subscribe(world)
    world.lose()
    world.pass_time(1)
    assert len(updates(world)) == 1
