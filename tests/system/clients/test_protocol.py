"""Adapters and daemons of different protocol numbers: who must be restarted, and how it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbus.wire.rpc import PROTOCOL
from tests.support.daemon import Daemon, wait
from tests.support.stdio import Adapter, ToolError
from tests.system.clients.conftest import FAST

CLAIM = ("--application", "clients", "--session", "versions")


@pytest.fixture
def bus() -> Iterator[Daemon]:
    with Daemon(**FAST) as daemon:
        daemon.start()
        yield daemon


def of_protocol(bus: Daemon, number: int) -> dict[str, Any]:
    """The environment of programs that were built for that protocol."""
    directory = Path(bus.directory, f"protocol-{number}")
    directory.mkdir(exist_ok=True)
    program = f"from agentbus.wire import rpc\nrpc.PROTOCOL = {number}\n"
    Path(directory, "sitecustomize.py").write_text(program)
    return {**bus.environment, "PYTHONPATH": str(directory)}


def refused(adapter: Adapter) -> str:
    with pytest.raises(ToolError) as refusal:
        adapter.call("whoami")
    assert refusal.value.code == "version_mismatch"
    assert not refusal.value.retryable
    return str(refusal.value)


def served(adapter: Adapter) -> bool:
    try:
        return adapter.call("whoami")["application"] == "clients"
    except ToolError as error:
        if error.code != "version_mismatch":
            raise
        return False


def test_an_older_adapter_is_told_that_it_is_the_one_to_restart(bus: Daemon) -> None:
    with Adapter(of_protocol(bus, PROTOCOL - 1), *CLAIM) as older:
        told = refused(older)
        assert "restart its harness session" in told
        assert "agentbus stop" not in told
        assert older.ask("ping") == {}
        # whoever is of the daemon's version is served beside it, under the same session
        with Adapter(bus.environment, *CLAIM) as fit:
            assert fit.call("send", channel="general", content="x")["seq"]
        assert "restart its harness session" in refused(older)


def test_a_newer_adapter_is_told_to_stop_the_daemon_and_goes_on_with_one_of_its_own(
    bus: Daemon,
) -> None:
    newer = of_protocol(bus, PROTOCOL + 1)
    with Adapter(bus.environment, *CLAIM) as before:
        sent = before.call("send", channel="general", content="kept")
    with Adapter(newer, *CLAIM) as adapter:
        assert "run `agentbus stop`" in refused(adapter)
        assert len(bus.supervisors()) == 1
        bus.stop()
        assert wait(lambda: served(adapter), 10)  # a call within a second gets the same answer
        found = adapter.call("history", channel="general", after=0)["messages"]
        assert [message["message_id"] for message in found] == [sent["message_id"]]
        with Adapter(bus.environment, *CLAIM) as old:
            assert "restart its harness session" in refused(old)
        # the peer of the tests is of the old protocol: `stop` is understood by every daemon
        bus.stop()
