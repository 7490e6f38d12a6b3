"""Counts are the writer's; that they have changed is told once in a while."""

from __future__ import annotations

from typing import Any

import pytest

from agentbus.gateway.inbox import NOTE_SECONDS
from agentbus.model.ids import ChannelId, SessionId
from agentbus.model.session import SessionKey
from agentbus.wire.links import (
    CountAsk,
    Counted,
    Subscribe,
    Subscribed,
    SubscriptionInfo,
    Unsubscribe,
    Unsubscribed,
)
from tests.support.gateway_rig import AT, GENERAL, MEMORY, Rig, entries, info, top


def inbox(rig: Rig, connection: int, **params: Any) -> int:
    return rig.ask(connection, "inbox", **params)


def counted(rig: Rig, *infos: SubscriptionInfo, session: int = 1) -> CountAsk:
    """The writer answers the oldest question."""
    asked = rig.frame(CountAsk)
    rig.outcomes(Counted(asked.ref, SessionId(session), list(infos)))
    return asked


def notes(rig: Rig, connection: int) -> list[str]:
    rig.sleep(NOTE_SECONDS + 0.01)
    return [note["attachment"] for note in rig.notes(connection, "inbox")]


# ---- counts


def test_an_attachment_is_told_what_waits_by_channel_with_its_age() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(1), info(2, MEMORY))
    request = inbox(rig, connection, attachment=attachment)
    asked = counted(rig, info(2, MEMORY, 4), info(1, GENERAL, 3, undelivered=2))
    assert asked.of == attachment
    (read,) = rig.reads
    assert (read.channel_id, read.edge, read.forward) == (GENERAL, 3, True)
    rig.read(entries(4, 5))
    assert rig.result(connection, request)["channels"] == [
        {"channel": "general", "undelivered": 2, "oldest_at": AT},
        {"channel": "memory", "undelivered": 0},
    ]


def test_the_age_is_that_of_a_message_of_somebody_else() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = inbox(rig, connection, attachment=attachment)
    counted(rig, info(1, undelivered=1))
    rig.read(entries(1, 3, sender=1))
    (entry,) = rig.result(connection, request)["channels"]
    assert "oldest_at" not in entry


def test_an_own_message_has_an_age_for_whoever_wants_own_ones() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = inbox(rig, connection, attachment=attachment)
    counted(rig, info(1, undelivered=1, include_own=True))
    rig.read(entries(1, 1, sender=1))
    (entry,) = rig.result(connection, request)["channels"]
    assert entry["oldest_at"] == AT


def test_without_redis_counts_come_without_ages() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.project(ready=False)
    request = inbox(rig, connection, attachment=attachment)
    counted(rig, info(1, undelivered=1))
    assert rig.result(connection, request)["channels"] == [{"channel": "general", "undelivered": 1}]


def test_a_session_is_found_by_its_name_whoever_holds_it() -> None:
    rig = Rig()
    connection = rig.connect()
    request = inbox(rig, connection, application="x", session="8", child="c")
    asked = counted(rig, info(9, undelivered=3), session=9)
    assert asked.of == SessionKey("x", "8", "c")
    rig.read(entries(1, 3, sender=9))
    (entry,) = rig.result(connection, request)["channels"]
    assert entry == {"channel": "general", "undelivered": 3}


def test_what_the_writer_refuses_is_refused() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = inbox(rig, connection, attachment=attachment)
    rig.refuse(rig.frame(CountAsk).ref, "storage_error")
    assert rig.result(connection, request)["code"] == "storage_error"
    request = inbox(rig, connection, application="x", session="8")
    rig.refuse(rig.frame(CountAsk).ref, "not_found")
    assert rig.result(connection, request)["code"] == "not_found"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"application": "x"},
        {"session": "1"},
        {"attachment": "1.1", "application": "x", "session": "1"},
    ],
)
def test_one_session_is_named_in_one_way(params: dict[str, Any]) -> None:
    rig = Rig()
    connection, _ = rig.member(1)
    error = rig.result(connection, inbox(rig, connection, **params))
    assert error["code"] == "invalid_argument"


def test_somebody_elses_attachment_is_none() -> None:
    rig = Rig()
    _, attachment = rig.member(1)
    error = rig.result(rig.connect(), inbox(rig, 2, attachment=attachment))
    assert error["code"] == "stale_attachment"


# ---- news


def test_messages_that_come_are_news_once_in_a_while() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    rig.show(2, 2)
    assert rig.notes(connection, "inbox") == []
    assert notes(rig, connection) == [attachment]
    assert notes(rig, connection) == []


def test_messages_for_whom_there_is_no_room_are_news_too() -> None:
    rig = Rig(prefetch_messages=1)
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    assert notes(rig, connection) == [attachment]
    rig.show(2, 2)
    assert notes(rig, connection) == [attachment]


def test_what_was_handed_off_is_news() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    notes(rig, connection)
    positions = [[1, 1]]
    rig.ask(connection, "delivered", attachment=attachment, epoch="1.0", positions=positions)
    assert notes(rig, connection) == [attachment]


def test_own_messages_are_no_news() -> None:
    rig = Rig()
    connection, _ = rig.member(1)
    rig.show(1, 1, sender=1)
    assert notes(rig, connection) == []


def test_what_retention_removes_is_news() -> None:
    rig = Rig(prefetch_messages=1)
    connection, attachment = rig.member(1)
    rig.show(1, 3)
    notes(rig, connection)
    rig.trim(top(1, 3, oldest=3))
    assert notes(rig, connection) == [attachment]


def test_following_and_leaving_a_channel_is_news() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(1, MEMORY))
    rig.ask(connection, "subscribe", attachment=attachment, channel="general")
    rig.outcomes(Subscribed(rig.frame(Subscribe).ref, info(2), created=True))
    assert notes(rig, connection) == [attachment]
    rig.ask(connection, "unsubscribe", attachment=attachment, channel="general")
    rig.outcomes(Unsubscribed(rig.frame(Unsubscribe).ref, "general", info(2).id))
    assert notes(rig, connection) == [attachment]


def test_whoever_has_gone_is_told_nothing() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    rig.ask(connection, "release", attachment=attachment)
    assert notes(rig, connection) == []


# ---- list of channels


def test_a_list_of_channels_counts_by_itself_what_is_known_one_by_one() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 2)
    (general, memory) = rig.call(connection, "channel.list", attachment=attachment)["channels"]
    assert (general["undelivered"], general["subscribed"]) == (2, True)
    assert (memory.get("undelivered"), memory["subscribed"]) == (None, False)
    assert rig.framed(CountAsk) == []


def test_whoever_lags_is_counted_by_the_writer() -> None:
    rig = Rig(prefetch_messages=1)
    connection, attachment = rig.member(1)
    rig.show(1, 4)
    request = rig.ask(connection, "channel.list", attachment=attachment)
    counted(rig, info(1, undelivered=3))
    general, _ = rig.result(connection, request)["channels"]
    assert general["undelivered"] == 3


def test_without_the_writer_a_list_tells_what_is_known() -> None:
    rig = Rig(prefetch_messages=1)
    connection, attachment = rig.member(1)
    rig.show(1, 4)
    rig.restart_writer(welcome=False)
    general, _ = rig.call(connection, "channel.list", attachment=attachment)["channels"]
    assert general["undelivered"] == 4


def test_what_was_taken_away_below_a_cursor_of_nobody_is_not_looked_for() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = inbox(rig, connection, attachment=attachment)
    counted(rig, *(info(number, ChannelId(1)) for number in range(3)))
    assert rig.reads == []
    assert len(rig.result(connection, request)["channels"]) == 3
