"""Reports free the window when they come and are answered when they are durable."""

from __future__ import annotations

import pytest

from agentbus.gateway import reports, writer_link
from agentbus.wire.events import Closed
from agentbus.wire.links import GATEWAY_WRITER, Done, GatewayHello, Release, Report
from tests.support.gateway_rig import MEMORY, Rig, entries, info, top


def report(rig: Rig, connection: int, attachment: str, *positions: tuple[int, int]) -> int:
    return rig.ask(connection, "delivered", attachment=attachment, epoch="1.0", positions=positions)


def test_reports_wait_twenty_milliseconds_and_go_together() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(1), info(2, MEMORY))
    rig.show(1, 5)
    rig.show(1, 3, channel=MEMORY)
    requests = [
        report(rig, connection, attachment, (1, 2)),
        report(rig, connection, attachment, (2, 3), (1, 4)),
        report(rig, connection, attachment, (1, 3)),
    ]
    assert rig.framed(Report) == []
    rig.sleep(reports.DELAY_SECONDS + 0.001)
    (frame,) = rig.framed(Report)
    assert (frame.attachment, frame.positions) == (attachment, [(1, 4), (2, 3)])
    assert all(rig.reply(connection, request) is None for request in requests)
    rig.outcomes(Done(frame.ref))
    assert [rig.result(connection, request) for request in requests] == [{}, {}, {}]


def test_a_hundred_reports_wait_no_longer() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, reports.MOST)
    for position in range(1, reports.MOST):
        report(rig, connection, attachment, (1, position))
    assert rig.framed(Report) == []
    report(rig, connection, attachment, (1, reports.MOST))
    assert [frame.positions for frame in rig.framed(Report)] == [[(1, reports.MOST)]]
    rig.sleep(1)
    assert rig.framed(Report) == []


def test_each_attachment_has_its_own_report() -> None:
    rig = Rig()
    one, two = rig.member(1), rig.member(2)
    rig.show(1, 1)
    report(rig, *one, (1, 1))
    report(rig, *two, (2, 1))
    rig.sleep(0.03)
    assert [frame.attachment for frame in rig.framed(Report)] == [one[1], two[1]]


def test_the_window_is_free_before_the_commit() -> None:
    rig = Rig(prefetch_messages=2)
    connection, attachment = rig.member(1)
    rig.show(1, 4)
    report(rig, connection, attachment, (1, 2))
    assert rig.delivered(connection) == [1, 2, 3, 4]
    assert rig.framed(Report) == []


def test_unknown_subscriptions_are_passed_over() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    assert rig.result(connection, report(rig, connection, attachment, (77, 9))) == {}
    report(rig, connection, attachment, (77, 9), (1, 1))
    rig.sleep(0.03)
    assert rig.frame(Report).positions == [(1, 1)]


@pytest.mark.parametrize("position", [-1, 6, 2**53])
def test_positions_that_do_not_exist_are_refused_and_move_nothing(position: int) -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 5)
    request = report(rig, connection, attachment, (1, 3), (1, position))
    assert rig.result(connection, request)["code"] == "invalid_argument"
    rig.sleep(1)
    assert rig.framed(Report) == []


def test_what_an_older_gateway_delivered_is_believed_until_the_tops_are_known() -> None:
    rig = Rig()
    rig.project(ready=False)
    connection, attachment = rig.member(1)
    report(rig, connection, attachment, (1, 7))
    rig.sleep(0.03)
    assert rig.frame(Report).positions == [(1, 7)]
    rig.project(top(1, 9))
    rig.read(entries(8, 9))
    assert rig.delivered(connection) == [8, 9]


def test_what_retention_removed_after_it_was_handed_off_may_still_be_reported() -> None:
    rig = Rig()
    rig.restart_writer(welcome=False)
    rig.welcome(general=9)
    rig.project(top(1, 0, count=0, oldest=0))
    connection, attachment = rig.member(1, info(1, position=3))
    report(rig, connection, attachment, (1, 9))
    rig.sleep(0.03)
    assert rig.frame(Report).positions == [(1, 9)]


def test_an_epoch_that_is_over_is_stale() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    rig.project(top(1, 1), rebuilds=1)
    error = rig.result(connection, report(rig, connection, attachment, (1, 1)))
    assert (error["code"], error["retryable"]) == ("stale_attachment", True)
    positions = [(1, 1)]
    rig.ask(connection, "delivered", attachment=attachment, epoch="1.1", positions=positions)
    rig.sleep(0.03)
    assert rig.frame(Report).positions == [(1, 1)]


def test_a_report_of_a_claim_that_is_over_is_stale() -> None:
    rig = Rig()
    connection, _ = rig.member(1)
    request = report(rig, connection, "1.9", (1, 1))
    assert rig.result(connection, request)["code"] == "stale_attachment"


def test_a_report_that_was_not_stored_is_answered_so_and_asked_again() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    request = report(rig, connection, attachment, (1, 1))
    rig.sleep(0.03)
    frame = rig.frame(Report)
    rig.refuse(frame.ref, "storage_error")
    assert rig.result(connection, request)["code"] == "storage_error"
    assert rig.framed(Report) == []
    rig.sleep(writer_link.AGAIN_SECONDS)
    assert rig.framed(Report) == [frame]
    rig.outcomes(Done(frame.ref))
    rig.sleep(5)
    assert rig.framed(Report) == []


def test_a_report_that_is_refused_for_good_is_not_asked_again() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    report(rig, connection, attachment, (1, 1))
    rig.sleep(0.03)
    rig.refuse(rig.frame(Report).ref, "stale_attachment")
    rig.sleep(5)
    assert rig.framed(Report) == []


def test_reports_wait_for_the_writer_however_long_it_is_away() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    report(rig, connection, attachment, (1, 1))
    rig.disconnect(connection)
    rig.event(Closed(GATEWAY_WRITER))
    rig.sleep(120)
    rig.restart_writer()
    assert [type(frame) for frame in rig.frames] == [GatewayHello, Report, Release]


def test_reports_survive_the_writer() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 2)
    request = report(rig, connection, attachment, (1, 2))
    rig.event(Closed(GATEWAY_WRITER))
    rig.sleep(1)
    rig.restart_writer()
    frame = rig.frame(Report)
    assert frame.positions == [(1, 2)]
    rig.outcomes(Done(frame.ref))
    assert rig.result(connection, request) == {}


@pytest.mark.parametrize("trouble", ["no disk", "no writer"])
def test_own_messages_that_were_passed_are_reported_until_that_is_stored(trouble: str) -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 2, sender=1)
    rig.ask(connection, "heartbeat")
    passed = rig.frame(Report)
    assert (passed.attachment, passed.positions) == (attachment, [(1, 2)])
    if trouble == "no disk":
        rig.refuse(passed.ref, "storage_error")
        rig.sleep(writer_link.AGAIN_SECONDS + 0.1)
    else:
        rig.restart_writer()
    assert rig.frame(Report) == passed
    rig.outcomes(Done(passed.ref))
    rig.sleep(10)
    rig.ask(connection, "heartbeat")
    assert rig.framed(Report) == []
