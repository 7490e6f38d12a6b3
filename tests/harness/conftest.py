"""Real harness programs, each in a home of its own, with a bus and a model of the test's."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.harness import tap
from tests.harness.model import Model
from tests.harness.programs import (
    ADAPTER,
    ClaudeCode,
    Codex,
    GeminiCli,
    OpenCode,
    Program,
    Server,
)
from tests.support.daemon import Daemon
from tests.support.stdio import Adapter

DIRECTORY = "AGENTBUS_HARNESS_DIR"
HERE = Path(__file__).parent

PROGRAMS: dict[type[Program], str] = {
    ClaudeCode: "@anthropic-ai/claude-code-*/claude",
    Codex: "@openai/codex-*/vendor/*/bin/codex",
    GeminiCli: ".bin/gemini",
    OpenCode: "opencode-*-*/bin/opencode",
}
"""With the place of the executable below `node_modules`; only Gemini CLI needs node to run."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without the programs these tests are skipped, and say so."""
    reason = f"{DIRECTORY} is not set: `tox -e harness` installs the programs and runs these"
    for item in items:
        if HERE in item.path.parents and not os.environ.get(DIRECTORY):
            item.add_marker(pytest.mark.skip(reason))


@pytest.fixture
def bus() -> Iterator[Daemon]:
    """A running daemon."""
    with Daemon() as daemon:
        daemon.start()
        yield daemon


@pytest.fixture
def model() -> Iterator[Model]:
    """The model that the program is told to use."""
    with Model() as found:
        yield found


@pytest.fixture
def server(bus: Daemon) -> Server:
    """`agentbus mcp`, in the test's bus."""
    names = ("AGENTBUS_RUNTIME_DIR", "AGENTBUS_CONFIG")
    return Server(ADAPTER, {name: bus.environment[name] for name in names})


@pytest.fixture
def tap_log(home: Path) -> Path:
    """What passes between the program and `tapped`."""
    return home / "log"


@pytest.fixture
def tapped(server: Server, tap_log: Path) -> Server:
    """The server, with what passes kept."""
    command = (sys.executable, tap.__file__, str(tap_log), *server.command)
    return msgspec.structs.replace(server, command=command)


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty directory."""
    directory = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def installed(kind: type[Program]) -> Path:
    """The executable."""
    below = Path(os.environ[DIRECTORY], "node_modules")
    found = next(below.glob(PROGRAMS[kind]), None)
    assert found is not None, f"there is no {below / PROGRAMS[kind]}"
    return found


@pytest.fixture(params=PROGRAMS, ids=lambda kind: kind.application)
def program(request: pytest.FixtureRequest, home: Path, model: Model) -> Program:
    """Each program in turn."""
    kind: type[Program] = request.param
    return kind(installed(kind), home, model)


@pytest.fixture
def codex(home: Path, model: Model) -> Codex:
    """For what it alone does."""
    return Codex(installed(Codex), home, model)


@pytest.fixture
def claude() -> Iterator[ClaudeCode]:
    """For a conversation with the other program: with a home and a model of its own."""
    with Model() as model, tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as home:
        yield ClaudeCode(installed(ClaudeCode), Path(home), model)


@pytest.fixture
def other(bus: Daemon) -> Iterator[Adapter]:
    """The second agent, an MCP client whose every step is the test's."""
    arguments = ("--application", "tests", "--session", "other", "--agent", "Bert")
    with Adapter(bus.environment, *arguments) as adapter:
        adapter.call("whoami")
        yield adapter
