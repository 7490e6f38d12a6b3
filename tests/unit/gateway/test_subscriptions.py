"""Channels and subscriptions on request."""

from __future__ import annotations

import pytest

from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, Seq
from agentbus.wire.events import Received
from agentbus.wire.links import (
    GATEWAY_WRITER,
    ChannelCreate,
    ChannelCreated,
    ChannelOpened,
    Stop,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from tests.support.gateway_rig import AT, MEMORY, Rig, info, top


def created(number: int, name: str) -> ChannelInfo:
    return ChannelInfo(ChannelId(number), name, "ordinary", Seq(0))


def test_a_channel_is_created_by_the_writer() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = rig.ask(connection, "channel.create", attachment=attachment, name="general/tmi")
    frame = rig.frame(ChannelCreate)
    assert (frame.name, frame.kind) == ("general/tmi", "ordinary")
    rig.event(Received(GATEWAY_WRITER, ChannelOpened(created(3, "general/tmi"))))
    rig.outcomes(ChannelCreated(frame.ref, created(3, "general/tmi"), True))
    assert rig.result(connection, request) == {
        "channel": "general/tmi",
        "kind": "ordinary",
        "created": True,
    }


def test_a_kind_that_does_not_exist_is_a_wrong_shape() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    error = rig.call(connection, "channel.create", attachment=attachment, name="x", kind="secret")
    assert error["code"] == "invalid_argument"


@pytest.mark.parametrize("method", ["subscribe", "unsubscribe"])
@pytest.mark.parametrize("name", ["", "x" * 129, "a\nb"])
def test_names_are_looked_at_before_anybody_is_asked(method: str, name: str) -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    error = rig.call(connection, method, attachment=attachment, channel=name)
    assert error["code"] == "invalid_argument"
    assert rig.frames == []


def test_a_subscription_is_fed_from_its_answer_on() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(1, MEMORY))
    request = rig.ask(
        connection, "subscribe", attachment=attachment, channel="general", include_own=True
    )
    frame = rig.frame(Subscribe)
    assert frame.include_own is True
    given = info(9, position=0, include_own=True)
    rig.outcomes(Subscribed(frame.ref, given, created=True, expired_from=Seq(4)))
    assert rig.result(connection, request) == {
        "subscription": 9,
        "channel": "general",
        "position": 0,
        "expires_at": "2027-01-15T08:00:00.000Z",
        "created": True,
        "include_own": True,
        "expired_from": 4,
    }
    rig.show(1, 1, sender=1)
    assert rig.delivered(connection) == [1]


def test_subscribing_again_moves_nothing_and_may_change_include_own() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 2)
    rig.ask(connection, "subscribe", attachment=attachment, channel="general", include_own=True)
    frame = rig.frame(Subscribe)
    rig.outcomes(Subscribed(frame.ref, info(1, include_own=True), created=False))
    rig.show(3, 3, sender=1)
    assert rig.delivered(connection) == [1, 2, 3]


def test_a_new_subscription_to_a_channel_replaces_the_old_one() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 2)
    rig.ask(connection, "subscribe", attachment=attachment, channel="general")
    rig.outcomes(Subscribed(rig.frame(Subscribe).ref, info(2, position=2), created=True))
    rig.delivered(connection)
    rig.show(3, 3)
    (note,) = rig.notes(connection, "deliver")
    assert note["subscription"] == 2


def test_an_unsubscribed_channel_is_fed_no_longer_and_its_window_is_free() -> None:
    rig = Rig(prefetch_messages=2)
    connection, attachment = rig.member(1, info(1), info(2, MEMORY))
    rig.show(1, 5)
    rig.delivered(connection)
    request = rig.ask(connection, "unsubscribe", attachment=attachment, channel="general")
    frame = rig.frame(Unsubscribe)
    rig.outcomes(Unsubscribed(frame.ref, "general", info(1).id))
    assert rig.result(connection, request) == {"channel": "general", "removed": True}
    rig.show(6, 6)
    rig.show(1, 2, channel=MEMORY)
    assert rig.delivered(connection) == [1, 2]


def test_there_may_have_been_nothing_to_unsubscribe() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = rig.ask(connection, "unsubscribe", attachment=attachment, channel="memory")
    rig.outcomes(Unsubscribed(rig.frame(Unsubscribe).ref, "memory", None))
    assert rig.result(connection, request) == {"channel": "memory", "removed": False}


def test_a_subscription_of_a_claim_that_ended_meanwhile_is_not_fed() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(1, MEMORY))
    rig.ask(connection, "subscribe", attachment=attachment, channel="general")
    frame = rig.frame(Subscribe)
    rig.ask(connection, "release", attachment=attachment)
    rig.outcomes(Subscribed(frame.ref, info(2), created=True))
    rig.show(1, 1)
    assert rig.delivered(connection) == []


def test_a_stopping_daemon_begins_nothing() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.ask(connection, "unsubscribe", attachment=attachment, channel="memory")
    rig.control_says(Stop())
    error = rig.call(connection, "subscribe", attachment=attachment, channel="memory")
    assert error["code"] == "unavailable"


# ---- listing


def test_channels_are_listed_with_what_the_session_has_of_them() -> None:
    rig = Rig()
    rig.project(top(1, 7), top(2, 2))
    connection, attachment = rig.member(1, info(1, position=7))
    rig.show(8, 9)
    rig.show(10, 10, sender=1)
    listed = rig.call(connection, "channel.list", attachment=attachment)
    assert listed == {
        "channels": [
            {
                "name": "general",
                "kind": "ordinary",
                "messages": 10,
                "subscribed": True,
                "newest_at": AT,
                "undelivered": 2,
            },
            {
                "name": "memory",
                "kind": "memory",
                "messages": 2,
                "subscribed": False,
                "newest_at": AT,
            },
        ]
    }


def test_an_empty_channel_has_no_newest_message() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    for entry in rig.call(connection, "channel.list", attachment=attachment)["channels"]:
        assert entry["messages"] == 0
        assert "newest_at" not in entry


def test_pages_follow_each_other_by_name_without_hole_or_repetition() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    names = {"general", "memory"}
    for number in range(3, 30):
        name = f"c/{number:02d}é"
        names.add(name)
        rig.event(Received(GATEWAY_WRITER, ChannelOpened(created(number, name))))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = rig.call(connection, "channel.list", attachment=attachment, limit=10, cursor=cursor)
        seen += [entry["name"] for entry in page["channels"]]
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    assert seen == sorted(names)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_limit_out_of_range_names_the_maximum(limit: int) -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    error = rig.call(connection, "channel.list", attachment=attachment, limit=limit)
    assert error["code"] == "invalid_argument"
    assert "1000" in error["message"]
