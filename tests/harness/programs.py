"""The harness programs: how each is told of its model and of the bus, and started.

    program       a new conversation    continued                    it tells its id as
    Claude Code   claude -p PROMPT      claude -p --resume ID ...    `session_id`
    Codex         codex exec PROMPT     codex exec resume ID ...     `thread_id`

Each runs in a home of its own, and knows nothing of the environment that the tests run in but the
PATH.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import msgspec
import psutil

from tests.harness.dialects import SERVER
from tests.harness.model import BOUND, Model, Turn
from tests.support.daemon import wait

ADAPTER = (sys.executable, "-m", "agentbus", "mcp")
PROMPT = "Talk with the others."


class Server(msgspec.Struct, frozen=True):
    """The MCP server that a harness is told to start."""

    command: Sequence[str]
    environment: Mapping[str, str]
    call_seconds: int | None = None
    """How long a call may take before it is given up; None for what the harness grants."""


class Program(ABC):
    """A harness program that is installed."""

    application: ClassVar[str]
    """What the bus calls it."""
    session_key: ClassVar[str]
    """Where its first lines of output tell the conversation's id."""

    def __init__(self, executable: Path, home: Path, model: Model) -> None:
        self.executable = executable
        self.home = home
        self.project = home / "project"
        self.model = model

    def begin(self, server: Server, session: str | None = None) -> Conversation:
        """Starts it with a prompt, in a new conversation or one that it knows."""
        self.project.mkdir(parents=True, exist_ok=True)
        self.configure(server)
        command = [str(self.executable), *self.arguments(session)]
        environment = {**self._clean(), **self.environment(server)}
        return Conversation(command, self.project, environment, self)

    def _clean(self) -> dict[str, str]:
        proxies = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY")
        local = "127.0.0.1,localhost"
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "LANG": "C.UTF-8",
            "NO_PROXY": local,
            "no_proxy": local,
            **dict.fromkeys(proxies, self.model.url),
        }

    @property
    def version(self) -> str:
        """As the program tells it."""
        command = [str(self.executable), "--version"]
        told = subprocess.run(
            command, env=self._clean(), capture_output=True, text=True, check=True
        )
        return next(word for word in told.stdout.split() if word[0].isdigit())

    @abstractmethod
    def configure(self, server: Server) -> None:
        """Writes its configuration files."""

    @abstractmethod
    def arguments(self, session: str | None) -> list[str]:
        """Of the command line."""

    @abstractmethod
    def environment(self, server: Server) -> dict[str, str]:
        """Variables of its own."""


class ClaudeCode(Program):
    """Claude Code."""

    application = "claude-code"
    session_key = "session_id"

    def configure(self, server: Server) -> None:
        """Into a file that its command line names."""
        command, *arguments = server.command
        entry = {"command": command, "args": arguments, "env": dict(server.environment)}
        self._servers.write_text(json.dumps({"mcpServers": {SERVER: entry}}))

    @property
    def _servers(self) -> Path:
        return self.home / "mcp.json"

    def arguments(self, session: str | None) -> list[str]:
        """Only the bus' tools are allowed, and without asking."""
        resume = ["--resume", session] if session else []
        servers = ["--mcp-config", str(self._servers), "--strict-mcp-config"]
        output = ["--output-format", "stream-json", "--verbose"]
        return ["-p", PROMPT, *resume, *servers, *output, "--allowedTools", f"mcp__{SERVER}"]

    def environment(self, server: Server) -> dict[str, str]:
        """The model's address; nothing that is not needed."""
        limit = server.call_seconds
        return {
            **({} if limit is None else {"MCP_TOOL_TIMEOUT": str(limit * 1000)}),
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }


class Codex(Program):
    """Codex."""

    application = "codex"
    session_key = "thread_id"

    def configure(self, server: Server) -> None:
        """Into its home."""
        command, *arguments = server.command
        limit = server.call_seconds
        timeout = "" if limit is None else f"tool_timeout_sec = {limit}"
        variables = ", ".join(f"{name} = {_toml(it)}" for name, it in server.environment.items())
        settings = f"""\
model = "none"
model_provider = "test"

[model_providers.test]
name = "test"
base_url = {_toml(self.model.url + "/v1")}
wire_api = "responses"
env_key = "TEST_KEY"
request_max_retries = 0
stream_max_retries = 0

[mcp_servers.{SERVER}]
command = {_toml(command)}
args = {_toml(arguments)}
env = {{ {variables} }}
default_tools_approval_mode = "approve"
{timeout}
"""
        (self.home / "config.toml").write_text(settings)

    def arguments(self, session: str | None) -> list[str]:
        """Whether the project is a repository is no matter."""
        resume = ["resume", session] if session else []
        return ["exec", *resume, "--skip-git-repo-check", "--json", PROMPT]

    def environment(self, server: Server) -> dict[str, str]:
        """Its home, and a key that it insists on."""
        return {"CODEX_HOME": str(self.home), "TEST_KEY": "none"}


def _toml(value: str | list[str]) -> str:
    return json.dumps(value)


class Conversation:
    """A harness program at work, a context manager that leaves nothing running."""

    def __init__(
        self, command: list[str], directory: Path, environment: dict[str, str], program: Program
    ) -> None:
        self.program = program
        self._process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.output: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.output.append(line.decode())
        self.program.model.turns.put(None)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        family = self._family()
        self._process.kill()
        self._process.wait()
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(family, BOUND)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        """Of the program."""
        return self._process.pid

    @property
    def session(self) -> str:
        """The conversation's id, which it tells when it starts."""
        assert wait(lambda: self._session() is not None), "no id was told"
        return self._session() or ""

    def _session(self) -> str | None:
        told = (json.loads(line) for line in self.output if line.startswith("{"))
        key = self.program.session_key
        return next((document[key] for document in told if key in document), None)

    def adapters(self) -> list[psutil.Process]:
        """The `agentbus mcp` processes under it."""
        return [each for each in self._family() if "mcp" in each.cmdline()]

    def _family(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return list(psutil.Process(self.pid).children(recursive=True))
        return []

    def turn(self) -> Turn:
        """What its model is asked next."""
        turn = self.program.model.turns.get(timeout=BOUND)
        assert turn is not None, f"the program has ended: {''.join(self.output[-20:])}"
        return turn

    def ends(self) -> int:
        """Waits for its end; the exit code."""
        assert self.program.model.turns.get(timeout=BOUND) is None, "the model is asked again"
        return self._process.wait(BOUND)
