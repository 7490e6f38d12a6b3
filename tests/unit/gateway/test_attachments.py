"""Claims on sessions: begun by the writer's leave, kept by heartbeats, ended once and in order."""

from __future__ import annotations

import pytest

from agentbus.gateway import attachments
from agentbus.wire.links import (
    Append,
    Done,
    Register,
    Release,
    Renew,
    Renewed,
    Report,
)
from tests.support.gateway_rig import Rig, info


def test_a_registration_goes_to_the_writer_and_back() -> None:
    rig = Rig()
    connection = rig.connect()
    request = rig.ask(
        connection,
        "register",
        application="codex",
        session="root",
        child="c1",
        parent="root",
        role="tests",
        agent="Sam",
        repository="tmi",
        repository_root="/src/tmi",
        channels=["general"],
    )
    frame = rig.frame(Register)
    assert frame.attachment == "1.1"
    assert (frame.application, frame.native, frame.child) == ("codex", "root", "c1")
    assert (frame.parent, frame.role, frame.channels) == ("root", "tests", ["general"])
    rig.outcomes(rig.registered(frame, 5, info(8, position=3)))
    assert rig.result(connection, request) == {
        "attachment": "1.1",
        "display_name": "Sam5",
        "agent": "Sam",
        "resumed": False,
        "epoch": "1.0",
        "subscriptions": [
            {
                "subscription": 8,
                "channel": "general",
                "position": 3,
                "expires_at": "2027-01-15T08:00:00.000Z",
                "include_own": False,
            }
        ],
        "instance": "bus",
    }


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"application": ""}, "application has 0"),
        ({"session": "x" * 129}, "session has 129"),
        ({"session": "é" * 65}, "session has 130"),
        ({"agent": "a\nb"}, "control character"),
        ({"agent": "a\u2028b"}, "line separator"),
        ({"repository": "a\x85b"}, "repository must"),
        ({"repository_root": "x" * 4097}, "repository_root must"),
        ({"child": "c"}, "child and parent"),
        ({"parent": "c"}, "child and parent"),
        ({"child": "c", "parent": "another"}, "parent is not the session"),
        ({"channels": ["a"] * 257}, "channels has 257"),
        ({"channels": ["a", ""]}, "name in channels"),
    ],
)
def test_a_registration_of_a_wrong_shape_is_refused_and_says_why(
    params: dict[str, object], said: str
) -> None:
    rig = Rig()
    given = {"application": "x", "session": "s", **params}
    error = rig.call(rig.connect(), "register", **given)
    assert error["code"] == "invalid_argument"
    assert said in error["message"]
    assert rig.frames == []


def test_a_session_that_is_held_is_refused_by_the_writer_and_leaves_nothing() -> None:
    rig = Rig()
    connection = rig.connect()
    request = rig.ask(connection, "register", application="x", session="1")
    rig.refuse(rig.frame(Register).ref, "session_already_connected")
    error = rig.result(connection, request)
    assert (error["code"], error["retryable"]) == ("session_already_connected", True)
    rig.disconnect(connection)
    assert rig.frames == []


def test_a_claim_is_of_its_connection_alone() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    other = rig.connect()
    assert rig.call(other, "renew", attachment=attachment)["code"] == "stale_attachment"
    assert rig.call(connection, "renew", attachment="1.99")["code"] == "stale_attachment"


def test_several_claims_live_on_one_connection() -> None:
    rig = Rig()
    connection = rig.connect()
    first, second = rig.attach(connection, 1), rig.attach(connection, 2)
    assert rig.call(connection, "heartbeat")["attachments"] == [first, second]


def test_a_connection_holds_a_bounded_number_of_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MOST", 2)
    rig = Rig()
    connection = rig.connect()
    rig.attach(connection, 1)
    rig.attach(connection, 2)
    error = rig.call(connection, "register", application="x", session="3")
    assert error["code"] == "invalid_argument"


def test_renewing_answers_with_the_new_lifetimes() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = rig.ask(connection, "renew", attachment=attachment)
    rig.outcomes(Renewed(rig.frame(Renew).ref, [info(1, expires_at=1_900_000_000.0)]))
    (subscription,) = rig.result(connection, request)["subscriptions"]
    assert subscription["expires_at"] == "2030-03-17T17:46:40.000Z"


# ---- ends


def test_a_release_is_answered_when_it_is_committed() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = rig.ask(connection, "release", attachment=attachment)
    assert rig.reply(connection, request) is None
    frame = rig.frame(Release)
    assert frame.attachment == attachment
    rig.outcomes(Done(frame.ref))
    assert rig.result(connection, request) == {}
    assert rig.call(connection, "heartbeat")["attachments"] == []


def test_a_release_that_could_not_be_stored_is_asked_again_after_the_reports_before_it() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1)
    rig.ask(connection, "delivered", attachment=attachment, epoch="1.0", positions=[[1, 1]])
    rig.disconnect(connection)
    report, release = rig.frame(Report), rig.frame(Release)
    rig.refuse(report.ref, "storage_error")
    rig.refuse(release.ref, "storage_error")
    rig.sleep(1.5)
    assert rig.frames == [report, release]


@pytest.mark.parametrize("code", ["storage_error", "unavailable"])
def test_a_claim_of_which_nobody_knows_whether_it_was_committed_is_ended(code: str) -> None:
    rig = Rig()
    connection = rig.connect()
    rig.ask(connection, "register", application="codex", session="root")
    frame = rig.frame(Register)
    rig.refuse(frame.ref, code)
    release = rig.frame(Release)
    assert release.attachment == frame.attachment
    rig.refuse(release.ref, "storage_error")
    rig.sleep(1.5)
    assert rig.frame(Release) == release


def test_a_claim_that_the_writer_has_refused_needs_no_end() -> None:
    rig = Rig()
    connection = rig.connect()
    rig.ask(connection, "register", application="codex", session="root")
    rig.refuse(rig.frame(Register).ref, "session_already_connected")
    assert rig.frames == []


def test_releasing_what_has_ended_is_no_error() -> None:
    rig = Rig()
    assert rig.call(rig.connect(), "release", attachment="1.7") == {}


def test_what_was_reported_before_a_connection_broke_still_counts() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 3)
    rig.ask(connection, "delivered", attachment=attachment, epoch="1.0", positions=[[1, 2]])
    rig.disconnect(connection)
    report, release = rig.frames
    assert isinstance(report, Report)
    assert (report.attachment, report.positions) == (attachment, [(1, 2)])
    assert isinstance(release, Release)
    assert release.attachment == attachment


def test_own_messages_are_passed_before_the_end() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 2, sender=1)
    rig.disconnect(connection)
    passed, release = rig.frames
    assert passed == Report(passed.ref, attachment, [(1, 2)])
    assert isinstance(release, Release)


def test_a_connection_that_breaks_while_it_registers_is_released() -> None:
    rig = Rig()
    connection = rig.connect()
    rig.ask(connection, "register", application="x", session="1")
    frame = rig.frame(Register)
    rig.disconnect(connection)
    assert rig.frame(Release).attachment == frame.attachment
    rig.outcomes(rig.registered(frame, 1, info(1)))
    rig.show(1, 1)
    assert rig.inbox[connection] == []


def test_without_a_heartbeat_claims_end_after_thirty_seconds() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.sleep(29)
    assert rig.call(connection, "heartbeat")["attachments"] == [attachment]
    rig.sleep(29.9)
    assert rig.framed(Release) == []
    rig.sleep(0.2)
    assert [frame.attachment for frame in rig.framed(Release)] == [attachment]
    assert rig.call(connection, "heartbeat")["attachments"] == []
    assert rig.call(connection, "renew", attachment=attachment)["code"] == "stale_attachment"


def test_each_connection_expires_for_itself() -> None:
    rig = Rig()
    rig.member(1)
    rig.sleep(20)
    lively, second = rig.member(2)
    rig.sleep(15)
    assert [frame.attachment for frame in rig.framed(Release)] == ["1.1"]
    assert rig.call(lively, "heartbeat")["attachments"] == [second]
    rig.sleep(31)
    assert [frame.attachment for frame in rig.framed(Release)] == [second]


def test_a_gateway_that_was_stopped_itself_ends_nobody() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.oversleep(600)
    assert rig.framed(Release) == []
    assert rig.call(connection, "heartbeat")["attachments"] == [attachment]
    rig.sleep(31)
    assert len(rig.framed(Release)) == 1


def test_what_waits_in_the_lane_of_an_ended_claim_is_refused() -> None:
    rig = Rig()
    sender, attachment = rig.member(1)
    flood = rig.flood()
    waiting = rig.send(sender, attachment, "waits")
    request = rig.ask(sender, "release", attachment=attachment)
    rig.outcomes(Done(rig.frame(Release).ref))
    assert rig.result(sender, waiting)["code"] == "stale_attachment"
    assert rig.result(sender, request) == {}
    rig.accept(*flood)
    assert rig.framed(Append) == []


def test_heartbeats_tell_whether_messages_are_on_their_way() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    assert rig.call(connection, "heartbeat")["lagging"] is False
    rig.show(2, 2)
    assert rig.call(connection, "heartbeat")["lagging"] is True
    rig.project(ready=False)
    result = rig.call(connection, "heartbeat")
    assert (result["attachments"], result["state"]) == ([attachment], "recovering")
    assert "lagging" not in result


def test_heartbeats_tell_what_is_accepted_and_what_is_visible() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.send(connection, attachment)
    rig.accept(rig.frame(Append))
    result = rig.call(connection, "heartbeat")
    assert (result["accepted"], result.get("visible", 0)) == (1, 0)
    rig.show(1, 1, commit=1)
    assert rig.call(connection, "heartbeat")["visible"] == 1


def test_another_bus_knows_no_claim_of_the_old_one() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.restart_writer(welcome=False)
    rig.welcome(2, "another")
    assert rig.call(connection, "renew", attachment=attachment)["code"] == "stale_attachment"
    assert rig.attach(connection, 1) == "2.2"
