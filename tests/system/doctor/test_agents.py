"""Harnesses that do not start the bus, and sessions that do not listen."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.stdio import Adapter
from tests.system.doctor.conftest import Doctor, Place

AGAIN = "\nagentbus init --global --harness codex"


@pytest.fixture
def bus(place: Place) -> Daemon:
    """A place in which nothing runs."""
    return place()


@pytest.fixture
def doctor(bus: Daemon, home: Path) -> Doctor:
    """In a home in which Codex is connected."""
    doctor = Doctor(bus, home)
    doctor.connect()
    return doctor


def entry(home: Path, text: str) -> None:
    (home / ".codex/config.toml").write_text(f"[mcp_servers.agentbus]\n{text}\n")


def test_no_harness_that_knows_the_bus(bus, home):
    told = Doctor(bus, home)().problem("harnesses")
    assert "Codex" in told
    assert told.endswith("\nagentbus init --global")


def test_one_of_two_that_does_not_know_it(doctor, home):
    (home / ".gemini").mkdir()
    told = doctor().warning("harnesses")
    assert "Gemini CLI does not know the bus" in told
    assert "\nagentbus init --global --harness gemini-cli" in told


def test_a_connected_harness_is_named_with_what_it_starts(doctor):
    told = doctor()
    assert told.of("harnesses", "ok") == f"Codex starts {Path(sys.executable).parent}/agentbus"
    assert told.of("hooks", "ok") == "Codex has its hooks"


def test_a_program_that_is_gone(doctor, home):
    entry(home, 'command = "/opt/old/bin/agentbus"\nargs = ["mcp"]')
    told = doctor().problem("harnesses")
    assert "/opt/old/bin/agentbus" in told
    assert AGAIN in told


def test_a_program_that_is_on_no_path(doctor, home):
    entry(home, 'command = "agentbus"\nargs = ["mcp"]')
    assert "is no program here" in doctor().problem("harnesses")


def test_another_installation(doctor, home):
    other = home / "bin/agentbus"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o700)
    entry(home, f'command = "{other}"\nargs = ["mcp"]')
    told = doctor().warning("harnesses")
    assert str(other) in told
    assert AGAIN in told


def test_a_server_that_is_switched_off(doctor, home):
    path = home / ".codex/config.toml"
    text = path.read_text()
    path.write_text(text.replace("[hooks.", "enabled = false\n[hooks."))
    assert "switched off" in doctor().problem("harnesses")


def test_a_harness_that_meets_another_bus(doctor, bus, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(Path(bus.config_path).read_text())
    told = doctor(AGENTBUS_CONFIG=str(other), AGENTBUS_RUNTIME_DIR=str(tmp_path / "run"))
    assert f"{bus.config_path} there, {other} here" in told.warning("harnesses")
    assert f"{tmp_path}/run here" in told.warning("harnesses")


def test_hooks_that_are_missing(doctor, home):
    (home / ".codex/hooks.json").write_text("{}")
    told = doctor().warning("hooks")
    assert str(home / ".codex/hooks.json") in told
    assert AGAIN in told


def test_hooks_that_the_user_has_not_trusted(doctor, home):
    path = home / ".codex/config.toml"
    path.write_text(path.read_text().replace('trusted_hash = "x"', ""))
    told = doctor().warning("hooks")
    assert str(home / ".codex/hooks.json") in told
    assert "/hooks" in told


def test_a_file_that_cannot_be_read_as_what_it_is(doctor, home):
    (home / ".codex/config.toml").write_text('token = "s3cret\n')
    told = doctor()
    assert "config.toml" in told.problem("harnesses")
    assert "s3cret" not in told.text


def test_no_secret_of_a_harness_is_shown(doctor, home):
    path = home / ".codex/config.toml"
    path.write_text(path.read_text().replace("[mcp_servers.agentbus]", SECRETS, 1))
    assert "s3cret" not in doctor().text
    assert "s3cret" not in doctor.run("doctor").stdout


SECRETS = """
[mcp_servers.other]
command = "other"
args = ["--token", "s3cret"]
[mcp_servers.agentbus]
http_headers = { Authorization = "s3cret" }
"""


def test_no_session(doctor, bus):
    bus.start()
    assert "no session is attached" in doctor().warning("sessions")


def test_a_session_that_is_subscribed_to_nothing(doctor, bus):
    with Adapter(bus.environment) as adapter:
        name = adapter.call("whoami")["display_name"]
        for channel in ("general", "memory"):
            adapter.call("unsubscribe", channel=channel)
        told = doctor().warning("sessions")
    assert f"{name} is subscribed to no channel" in told


def test_messages_that_nobody_reads(doctor, bus):
    clock = bus.clock()
    doctor.environment["AGENTBUS_TEST"] = bus.environment["AGENTBUS_TEST"]
    bus.start()
    with Adapter(bus.environment) as reader, bus.peer() as peer:
        name = reader.call("whoami")["display_name"]
        peer.attach("sender").send("general", "one", "hello")
        assert "clock" not in {each["check"] for each in doctor().document["checks"]}
        assert name in doctor().of("sessions", "ok")
        clock.jump(660.0, 660.0)
        told = doctor().of("sessions", "warning")
    assert f"1 messages wait for {name} in general" in told
    assert f"ask {name} to call `recv`" in told


def test_a_channel_that_nobody_hears(doctor, bus):
    with Adapter(bus.environment) as adapter:
        adapter.call("create_channel", name="lonely")
        adapter.call("send", channel="lonely", content="hello?")
        adapter.call("unsubscribe", channel="lonely")
        told = doctor().warning("channels")
    assert "nobody is subscribed to lonely" in told


def test_the_document_is_what_the_reference_says(doctor):
    document = doctor().document
    assert set(document) == {"version", "result", "problems", "warnings", "checks"}
    for each in document["checks"]:
        assert set(each) == {"check", "result", "found", "do"}
        assert each["result"] in ("ok", "warning", "problem")
        assert bool(each["do"]) or each["result"] != "problem", json.dumps(each)
