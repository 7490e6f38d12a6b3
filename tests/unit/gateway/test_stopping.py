"""The orderly end: told to all, what was begun is finished, and it does not take for ever."""

from __future__ import annotations

from agentbus.gateway.stopping import PATIENCE_SECONDS
from agentbus.wire.events import Closed
from agentbus.wire.links import (
    GATEWAY_WRITER,
    Append,
    Done,
    Report,
    ResetRequested,
    StopRequested,
)
from tests.support.gateway_rig import Rig


def test_a_request_to_stop_is_answered_and_passed_on() -> None:
    rig = Rig()
    connection = rig.connect()
    assert rig.call(connection, "stop") == {}
    assert rig.control == [StopRequested()]
    assert rig.exit is None


def test_a_reset_is_answered_passed_on_and_told_as_an_end_to_come_back_from() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    assert rig.call(connection, "reset") == {}
    assert rig.control == [ResetRequested()]
    rig.flood()
    waiting = rig.send(connection, attachment)
    rig.stop()
    assert rig.notes(connection, "stopping") == [{"reason": "stop", "intentional": False}]
    error = rig.result(connection, waiting)
    assert error["code"] == "unavailable"
    assert "reset" in error["message"]


def test_a_reset_needs_no_greeting_so_it_works_whatever_the_versions_are() -> None:
    rig = Rig()
    rig.call(rig.connect(greet=False), "reset")
    assert rig.control == [ResetRequested()]


def test_everybody_is_told_and_the_end_comes_at_once_when_nothing_is_left() -> None:
    rig = Rig()
    connections = [rig.connect(), rig.connect()]
    rig.stop()
    for connection in connections:
        note = {"reason": "stop", "intentional": True}
        assert rig.notes(connection, "stopping") == [note]
    assert rig.exit == 0


def test_what_was_accepted_or_reported_is_finished_first() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    rig.show(2, 2, sender=1)
    send = rig.send(connection, attachment)
    report = rig.ask(
        connection, "delivered", attachment=attachment, epoch="1.0", positions=[(1, 1)]
    )
    rig.stop()
    assert rig.exit is None
    append, (told, passed) = rig.frame(Append), rig.framed(Report)
    rig.accept(append, first=3)
    assert rig.exit is None
    rig.outcomes(Done(told.ref))
    assert rig.exit is None
    rig.outcomes(Done(passed.ref))
    assert rig.result(connection, send)["seq"] == 3
    assert rig.result(connection, report) == {}
    assert rig.exit == 0


def test_own_messages_are_passed_before_the_end() -> None:
    rig = Rig()
    _, attachment = rig.member(1)
    rig.show(1, 1, sender=1)
    rig.stop()
    passed = rig.frame(Report)
    assert passed == Report(passed.ref, attachment, [(1, 1)])
    assert rig.exit is None
    rig.outcomes(Done(passed.ref))
    assert rig.exit == 0


def test_what_is_reported_while_it_stops_still_counts() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    rig.send(connection, attachment)
    rig.stop()
    rig.ask(connection, "delivered", attachment=attachment, epoch="1.0", positions=[(1, 1)])
    assert rig.frame(Report).positions == [(1, 1)]


def test_a_writer_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    rig = Rig()
    rig.send(*rig.member(1))
    rig.event(Closed(GATEWAY_WRITER))
    rig.stop()
    rig.stop()
    assert rig.exit is None
    rig.sleep(PATIENCE_SECONDS + 0.1)
    assert rig.exit == 0


def test_what_waits_for_credit_is_refused() -> None:
    rig = Rig()
    rig.flood()
    connection, attachment = rig.member(99)
    waiting = rig.send(connection, attachment)
    rig.stop()
    assert rig.result(connection, waiting)["code"] == "unavailable"
