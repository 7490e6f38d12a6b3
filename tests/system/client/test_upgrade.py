"""An adapter and a daemon of different versions: who is told what, and that it helps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.daemon import BOUND, Daemon
from tests.support.stdio import Adapter, ToolError
from tests.system.errors.conftest import inject

NEWER = """
import agentbus
agentbus.__version__ = "9.9.9"
from agentbus.wire import rpc
rpc.PROTOCOL = 99
"""


@pytest.fixture
def bus() -> Iterator[Daemon]:
    """A place in which nothing runs yet."""
    with Daemon() as daemon:
        yield daemon


def agentbus(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agentbus", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=BOUND * 2,
        check=False,
    )


def test_a_new_adapter_that_meets_an_old_daemon_says_how_to_restart_it_and_that_helps(bus):
    bus.start()
    newer = inject(bus, NEWER)
    with Adapter(newer) as adapter:
        with pytest.raises(ToolError) as refusal:
            adapter.call("send", channel="general", content="hello")
        told = str(refusal.value)
        assert refusal.value.code == "version_mismatch"
        assert "'9.9.9' (protocol 99)" in told
        assert "the daemon is the older one" in told
        assert "run `agentbus stop`; the next call starts one of the caller's version" in told
        status = agentbus(newer, "status", "--json")
        assert (status.returncode, status.stderr) == (0, "")
        assert agentbus(newer, "stop").stdout == "agentbus has stopped\n"
        assert adapter.call("send", channel="general", content="hello")["seq"] == 1
    assert agentbus(newer, "stop").returncode == 0


def test_an_old_adapter_that_meets_a_new_daemon_is_told_to_restart_its_session(bus):
    older = dict(bus.environment)
    newer = inject(bus, NEWER)
    with Adapter(older) as adapter:
        adapter.call("send", channel="general", content="before")
        assert agentbus(newer, "stop").returncode == 0
        assert agentbus(newer, "daemon").returncode == 0
        with pytest.raises(ToolError) as refusal:
            adapter.call("send", channel="general", content="after")
        assert refusal.value.code == "version_mismatch"
        assert "the caller is the older one" in str(refusal.value)
        assert "restart its harness session" in str(refusal.value)
    with Adapter(newer) as adapter:
        history = adapter.call("history", channel="general")
        assert [each["content"] for each in history["messages"]] == ["before"]
    assert agentbus(older, "stop").stdout == "agentbus has stopped\n"
