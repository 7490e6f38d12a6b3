"""Who may talk to this daemon."""

from __future__ import annotations

import pytest

from agentbus import __version__
from agentbus.config import Settings
from agentbus.gateway.pending import HINDERED_SECONDS, PATIENCE_SECONDS
from agentbus.wire.error_codes import INVALID_REQUEST, Failure
from agentbus.wire.events import Opened
from agentbus.wire.links import GATEWAY_WRITER, Append, Stop, WriterHindered
from agentbus.wire.rpc import PROTOCOL
from tests.support.gateway_rig import Rig


def test_a_greeting_tells_which_bus_this_is() -> None:
    rig = Rig()
    result = rig.call(rig.connect(greet=False), "hello", protocol=PROTOCOL, version=__version__)
    assert result == {
        "protocol": PROTOCOL,
        "version": __version__,
        "instance": "bus",
        "state": "ready",
    }


def test_a_greeting_waits_until_the_bus_is_known() -> None:
    rig = Rig(start=False)
    rig.event(Opened(GATEWAY_WRITER))
    connection = rig.connect(greet=False)
    request = rig.ask(connection, "hello", protocol=PROTOCOL, version="x")
    assert rig.reply(connection, request) is None
    rig.welcome()
    assert rig.result(connection, request)["state"] == "recovering"


def test_a_greeting_that_waits_is_refused_when_the_daemon_stops() -> None:
    rig = Rig(start=False)
    connection = rig.connect(greet=False)
    request = rig.ask(connection, "hello", protocol=PROTOCOL, version="x")
    rig.stop()
    assert rig.result(connection, request)["code"] == "unavailable"


def test_a_greeting_is_refused_with_the_reason_while_the_writer_cannot_write() -> None:
    rig = Rig(start=False)
    connection = rig.connect(greet=False)
    waiting = rig.ask(connection, "hello", protocol=PROTOCOL, version="x")
    rig.control_says(WriterHindered(Failure("storage_error", "the disk is full")))
    assert rig.result(connection, waiting)["code"] == "storage_error"
    later = rig.call(connection, "hello", protocol=PROTOCOL, version="x")
    assert (later["code"], later["message"]) == ("storage_error", "the disk is full")
    rig.event(Opened(GATEWAY_WRITER))
    rig.welcome()
    assert rig.call(connection, "hello", protocol=PROTOCOL, version="x")["instance"] == "bus"


def test_what_keeps_a_restarted_writer_away_is_told_until_it_is_back() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.restart_writer(welcome=False)
    rig.control_says(WriterHindered(Failure("storage_error", "the disk is full")))
    error = rig.result(connection, rig.send(connection, attachment))
    assert (error["code"], error["message"]) == ("storage_error", "the disk is full")
    rig.welcome()
    rig.send(connection, attachment)
    rig.accept(rig.frame(Append))


def test_what_a_writer_held_when_it_died_is_refused_with_what_keeps_the_next_one_away() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    sent = rig.send(connection, attachment)
    rig.restart_writer(welcome=False)
    rig.control_says(WriterHindered(Failure("storage_error", "the disk is full")))
    rig.sleep(HINDERED_SECONDS - 0.1)
    assert rig.reply(connection, sent) is None
    rig.sleep(0.2)
    error = rig.result(connection, sent)
    assert error["code"] == "unavailable"
    assert "the disk is full" in error["message"]
    rig.welcome()
    rig.accept(rig.frame(Append))  # nobody waits for it any more
    later = rig.send(connection, attachment, "later")
    rig.accept(rig.frame(Append))
    assert "seq" in rig.result(connection, later)


def test_a_writer_that_serves_may_take_long_over_what_the_one_before_did_not_answer() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    sent = rig.send(connection, attachment)
    rig.restart_writer()
    rig.sleep(PATIENCE_SECONDS + 1)
    rig.ask(connection, "heartbeat")
    assert rig.reply(connection, sent) is None
    rig.accept(rig.frame(Append))
    assert "seq" in rig.result(connection, sent)


def test_a_hindrance_that_is_over_by_the_time_it_is_heard_of_is_nothing() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.control_says(WriterHindered(Failure("storage_error", "the disk is full")))
    rig.send(connection, attachment)
    rig.accept(rig.frame(Append))


@pytest.mark.parametrize(
    ("protocol", "remedy"),
    [
        (-1, "restart its harness session"),
        (PROTOCOL - 1, "restart its harness session"),
        (PROTOCOL + 1, "run `agentbus stop`"),
        (10**30, "run `agentbus stop`"),
    ],
)
def test_another_protocol_is_refused_and_told_who_is_to_restart(protocol: int, remedy: str) -> None:
    rig = Rig()
    connection = rig.connect(greet=False)
    error = rig.call(connection, "hello", protocol=protocol, version="9.9")
    assert error["code"] == "version_mismatch"
    assert remedy in error["message"]
    assert "9.9" in error["message"]
    refused = rig.reply(connection, rig.ask(connection, "heartbeat"))
    assert refused is not None
    assert refused["error"]["code"] == INVALID_REQUEST


def test_other_settings_of_the_same_version_are_refused_with_both_paths() -> None:
    rig = Rig()
    greeting = {"protocol": PROTOCOL, "fingerprint": "f" * 32, "config_path": "/mine.json"}
    error = rig.call(rig.connect(greet=False), "hello", version=__version__, **greeting)
    assert error["code"] == "config_mismatch"
    assert "/mine.json" in error["message"]
    assert "/etc/agentbus.json" in error["message"]


def test_settings_are_compared_between_equal_versions_only() -> None:
    rig = Rig()
    greeting = {"protocol": PROTOCOL, "fingerprint": "f" * 32}
    assert "state" in rig.call(rig.connect(greet=False), "hello", version="9.9", **greeting)
    same = {"protocol": PROTOCOL, "fingerprint": Settings().fingerprint()}
    assert "state" in rig.call(rig.connect(greet=False), "hello", version=__version__, **same)


@pytest.mark.parametrize("method", ["status", "stop"])
def test_status_and_stop_work_without_a_greeting(method: str) -> None:
    rig = Rig()
    connection = rig.connect(greet=False)
    request = rig.ask(connection, method)
    rig.sleep(2)
    answer = rig.reply(connection, request)
    assert answer is not None
    assert "result" in answer


def test_a_stranger_is_cut_off() -> None:
    rig = Rig()
    rig.connect_stranger(77)
    assert rig.closed == [77]
    rig.line(77, b'{"id":1,"method":"status"}')
    assert rig.inbox[77] == []


def test_stopping_is_a_state_that_greetings_tell() -> None:
    rig = Rig()
    rig.member(1)
    connection = rig.connect(greet=False)
    rig.send(*rig.member(2), "keeps it busy")
    rig.control_says(Stop())
    result = rig.call(connection, "hello", protocol=PROTOCOL, version="x")
    assert result["state"] == "stopping"
