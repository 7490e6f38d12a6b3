"""A cursor that ran out is told once, kept until the session has said so, and never moved."""

from __future__ import annotations

from agentbus.gateway.reports import DELAY_SECONDS
from agentbus.model.ids import AttachmentId, ChannelId, Seq, SubscriptionId
from agentbus.wire.events import Received
from agentbus.wire.links import (
    GATEWAY_WRITER,
    CursorsExpired,
    Done,
    ExpiredInfo,
    Register,
    Report,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from tests.support.gateway_rig import Rig, info


def gone(number: int = 7, position: int = 4) -> ExpiredInfo:
    return ExpiredInfo(SubscriptionId(number), "general", ChannelId(1), Seq(position))


def resumed(rig: Rig, *expired: ExpiredInfo) -> tuple[int, str]:
    """A session comes back, whose cursors ran out while it was away."""
    connection = rig.connect()
    request = rig.ask(connection, "register", application="x", session="1")
    frame = rig.frame(Register)
    rig.outcomes(rig.registered(frame, 1, expired=expired))
    return connection, rig.result(connection, request)["attachment"]


def expire(rig: Rig, attachment: str, *expired: ExpiredInfo) -> None:
    frame = CursorsExpired(AttachmentId(attachment), list(expired))
    rig.event(Received(GATEWAY_WRITER, frame))


def report(rig: Rig, connection: int, attachment: str, position: int, epoch: str = "1.0") -> int:
    positions = [[7, position]]
    request = rig.ask(
        connection, "delivered", attachment=attachment, epoch=epoch, positions=positions
    )
    rig.sleep(DELAY_SECONDS + 0.001)
    return request


def test_a_session_that_comes_back_is_told_which_cursors_ran_out() -> None:
    rig = Rig()
    connection, attachment = resumed(rig, gone())
    (note,) = rig.notes(connection, "deliver")
    assert note == {
        "attachment": attachment,
        "epoch": "1.0",
        "subscription": 7,
        "channel": "general",
        "through": 4,
        "expired": [{"channel": "general", "position": 4}],
    }


def test_its_report_reaches_the_writer_and_ends_it() -> None:
    rig = Rig()
    connection, attachment = resumed(rig, gone())
    rig.notes(connection, "deliver")
    request = report(rig, connection, attachment, 4)
    frame = rig.frame(Report)
    assert frame.positions == [(7, 4)]
    rig.outcomes(Done(frame.ref))
    assert rig.result(connection, request) == {}
    rig.project(rebuilds=1)
    assert rig.notes(connection, "deliver") == []
    report(rig, connection, attachment, 4, "1.1")
    assert rig.framed(Report) == []


def test_a_cursor_that_runs_out_while_its_session_is_there_is_fed_no_more() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(7, position=4))
    expire(rig, attachment, gone())
    (note,) = rig.notes(connection, "deliver")
    assert (note["through"], note["expired"][0]["position"]) == (4, 4)
    rig.show(5, 5)
    assert rig.notes(connection, "deliver") == []


def test_what_was_pushed_before_comes_before_the_news() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(7, position=0))
    rig.show(1, 3)
    rig.delivered(connection)
    expire(rig, attachment, gone(position=0))
    (note,) = rig.notes(connection, "deliver")
    assert note["through"] == 4
    report(rig, connection, attachment, 3)
    assert rig.framed(Report) == []
    report(rig, connection, attachment, 4)
    assert rig.frame(Report).positions == [(7, 0)]


def test_what_the_next_writer_tells_again_is_no_news() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(7, position=0))
    rig.show(1, 3)
    rig.delivered(connection)
    expire(rig, attachment, gone(position=0))
    rig.notes(connection, "deliver")
    expire(rig, attachment, gone(position=0))
    assert rig.notes(connection, "deliver") == []
    report(rig, connection, attachment, 3)
    assert rig.framed(Report) == [], "the messages were handed off, not the news"


def test_what_was_reported_just_before_does_not_end_it() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(7, position=0))
    rig.show(1, 1)
    report(rig, connection, attachment, 1)
    frame = rig.frame(Report)
    expire(rig, attachment, gone(position=1))
    rig.outcomes(Done(frame.ref))
    report(rig, connection, attachment, 1)
    assert rig.frame(Report).positions == [(7, 1)]


def test_a_new_epoch_tells_it_again() -> None:
    rig = Rig()
    connection, _ = resumed(rig, gone())
    rig.notes(connection, "deliver")
    rig.project(rebuilds=1)
    (note,) = rig.notes(connection, "deliver")
    assert (note["epoch"], note["through"]) == ("1.1", 4)


def test_following_the_channel_anew_or_leaving_it_ends_it() -> None:
    rig = Rig()
    connection, attachment = resumed(rig, gone())
    rig.ask(connection, "subscribe", attachment=attachment, channel="general")
    rig.outcomes(Subscribed(rig.frame(Subscribe).ref, info(8), created=True, expired_from=Seq(4)))
    report(rig, connection, attachment, 4)
    assert rig.framed(Report) == []
    connection, attachment = resumed(rig, gone())
    rig.ask(connection, "unsubscribe", attachment=attachment, channel="general")
    rig.outcomes(Unsubscribed(rig.frame(Unsubscribe).ref, "general", SubscriptionId(7)))
    report(rig, connection, attachment, 4)
    assert rig.framed(Report) == []


def test_what_ran_out_for_a_session_that_has_gone_is_nothing() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(7))
    rig.disconnect(connection)
    expire(rig, attachment, gone())
    assert rig.notes(connection, "deliver") == []
