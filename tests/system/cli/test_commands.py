"""The commands, as a person or a script runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from agentbus import __version__
from tests.support.daemon import BOUND, Daemon, wait

AGENTBUS = [sys.executable, "-m", "agentbus"]
MEMBERS = {
    "version",
    "state",
    "instance",
    "uptime_s",
    "config_path",
    "processes",
    "reasons",
    "redis",
    "index",
    "sqlite",
    "budgets",
    "totals",
    "rates",
    "latency_ms",
    "sessions",
    "channels",
    "warnings",
}


@pytest.fixture
def bus() -> Iterator[Daemon]:
    """A place in which nothing runs yet."""
    with Daemon() as daemon:
        yield daemon


def run(bus: Daemon, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AGENTBUS, *arguments],
        env=bus.environment,
        capture_output=True,
        text=True,
        timeout=BOUND * 2,
        check=False,
        **options,
    )


def test_a_bus_is_started_shown_and_stopped(bus):
    started = run(bus, "daemon")
    assert (started.returncode, started.stderr) == (0, "")
    assert started.stdout == f"agentbus is running (pid {bus.pid('supervisor')})\n"

    shown = run(bus, "status")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"agentbus {__version__} is ready, up ")

    stopped = run(bus, "stop")
    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (0, "agentbus has stopped\n", "")
    assert bus.ended()
    assert not os.path.exists(bus.paths.socket)


def test_starting_again_finds_the_one_that_runs(bus):
    assert run(bus, "daemon").stdout == run(bus, "daemon").stdout


def test_where_nothing_runs_status_says_so_with_its_exit_code_and_stop_is_content(bus):
    assert run(bus, "status").returncode == 3
    document = run(bus, "status", "--json")
    assert (document.returncode, json.loads(document.stdout)) == (3, {"state": "stopped"})
    assert run(bus, "stop").returncode == 0
    assert not os.path.exists(bus.paths.runtime_directory)


def test_the_status_document_has_every_member_of_the_contract(bus):
    run(bus, "daemon")
    bus.wait_until(lambda status: "indexer" in {item["name"] for item in status["processes"]})
    result = run(bus, "status", "--json")
    document = json.loads(result.stdout)
    assert (result.returncode, result.stderr) == (0, "")
    assert set(document) == MEMBERS
    assert {process["name"] for process in document["processes"]} == {
        "supervisor",
        "writer",
        "projector",
        "gateway",
        "indexer",
        "redis",
    }
    assert document["config_path"] == bus.config_path
    assert document["redis"]["healthy"]
    assert {channel["name"] for channel in document["channels"]} == {"general", "memory"}


def test_the_detached_daemon_keeps_nothing_of_its_starter(bus):
    run(bus, "daemon", cwd=bus.directory)
    daemon = psutil.Process(bus.pid("supervisor"))
    assert daemon.ppid() in (1, *(parent.pid for parent in psutil.Process().parents()))
    assert os.getsid(daemon.pid) != os.getsid(0)
    if sys.platform == "linux":
        assert daemon.cwd() == "/"
        streams = {os.readlink(f"/proc/{daemon.pid}/fd/{number}") for number in range(3)}
        assert streams == {"/dev/null"}


@pytest.mark.skipif(sys.platform != "linux", reason="titles of forked processes are Linux' alone")
def test_ps_names_each_process(bus):
    run(bus, "daemon")
    supervisor = psutil.Process(bus.pid("supervisor"))
    titles = {title(process) for process in supervisor.children()}
    assert {"agentbus: writer", "agentbus: projector", "agentbus: gateway"} <= titles
    assert title(supervisor) == "agentbus: supervisor"


def title(process: psutil.Process) -> str:
    """As `ps` shows it: what had been the arguments, blanks after it."""
    return " ".join(process.cmdline()).strip()


def test_in_the_foreground_an_interrupt_stops_it_in_order(bus):
    daemon = subprocess.Popen(
        [*AGENTBUS, "daemon", "--foreground"], env=bus.environment, stdin=subprocess.DEVNULL
    )
    bus.wait_until(lambda status: status["state"] == "ready")
    daemon.send_signal(signal.SIGINT)
    assert daemon.wait(BOUND) == 0
    assert wait(bus.ended)


def test_the_daemons_first_process_has_not_loaded_the_command_line_library(bus):
    program = (
        "import sys; sys.argv = ['agentbus', 'daemon', '--foreground', '--config', 'missing'];"
        "from agentbus.__main__ import main; code = main();"
        "print(code, sorted({'typer', 'rich', 'asyncio', 'redis'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=bus.environment,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert result.stdout == "1 []\n"


def test_a_daemon_that_cannot_start_says_why_and_what_to_do(bus):
    with open(bus.config_path, "w") as file:
        json.dump({"data_directory": "data", "redis_executable": "/nowhere/redis-server"}, file)
    result = run(bus, "daemon")
    assert (result.returncode, result.stdout) == (1, "")
    [line] = result.stderr.splitlines()
    assert line.startswith("agentbus: redis_missing: ")
    assert "/nowhere/redis-server" in line
    assert bus.ended()


@pytest.mark.parametrize("command", [["daemon"], ["status"], ["stop"], ["config", "show"]])
def test_every_command_takes_another_configuration_file(bus, command):
    result = run(bus, *command, "--config", "/nowhere/config.json")
    assert (result.returncode, result.stdout) == (1, "")
    [line] = result.stderr.splitlines()
    assert line.startswith("agentbus: config_invalid: /nowhere/config.json: ")


def test_a_relative_configuration_path_is_relative_to_where_the_person_is(bus):
    name = os.path.basename(bus.config_path)
    environment = {**bus.environment}
    del environment["AGENTBUS_CONFIG"]
    result = subprocess.run(
        [*AGENTBUS, "daemon", "--config", name],
        env=environment,
        cwd=bus.directory,
        capture_output=True,
        text=True,
        timeout=BOUND * 2,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert bus.status()["config_path"] == bus.config_path
