"""The harness programs: how each is told of its model and of the bus, and started.

    program       a new conversation    continued                    it tells its id as
    Claude Code   claude -p PROMPT      claude -p --resume ID ...    `session_id`
    Codex         codex exec PROMPT     codex exec resume ID ...     `thread_id`
    Gemini CLI    gemini -p PROMPT      gemini --resume ID ...       `session_id`
    opencode      opencode run PROMPT   opencode run -s ID ...       `sessionID`

Each runs in a home of its own, and knows nothing of the environment that the tests run in but the
PATH. The MCP server is written into its configuration by the tests, or by `agentbus init`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import psutil

from agentbus.harness import connect
from tests.harness import tap
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
    talks = False
    """Whether prompts come on its stdin, one after the other, rather than one on its command line;
    Claude Code alone can."""
    servers: ClassVar[str]
    """The file in its home in which `init` names the server."""
    call_seconds: int | None = None
    """As in `Server`, where `init` has named it."""
    names_sessions: ClassVar[bool] = True
    """Whether the bus knows its conversations without a hook or a plugin of ours."""
    session_key: ClassVar[str]
    """Where its first lines of output tell the conversation's id."""

    def __init__(self, executable: Path, home: Path, model: Model) -> None:
        self.executable = executable
        self.home = home
        self.project = home / "project"
        self.model = model

    def begin(self, server: Server | None, session: str | None = None) -> Conversation:
        """Starts it with a prompt, in a new conversation or one that it knows; without a server it
        is as it was left, by `agentbus init` perhaps."""
        self.project.mkdir(parents=True, exist_ok=True)
        if server is not None:
            self.configure(server)
        command = [str(self.executable), *self.arguments(server, session)]
        environment = {**self._clean(), **self.environment(server)}
        return Conversation(command, self.project, environment, self, server)

    def init(self, bus: Mapping[str, str], *arguments: str) -> str:
        """Runs `agentbus init --global` for it, beside that bus; what it says."""
        self.project.mkdir(parents=True, exist_ok=True)
        self.configure(None)
        names = ("AGENTBUS_RUNTIME_DIR", "AGENTBUS_CONFIG")
        given = {name: bus[name] for name in names}
        command = [*ADAPTER[:-1], "init", "--global", "--harness", self.application, *arguments]
        environment = {**self._clean(), **self.environment(None), **given}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tap(self, log: Path, call_seconds: int) -> None:
        """Has what passes between it and the server that `init` gave it kept in a file, and calls
        given up after so long."""
        start = json.dumps(connect.this_program(None).command[0])
        script = self.home / "tapped"
        words = [sys.executable, tap.__file__, str(log), json.loads(start)]
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o700)
        path = self.home / self.servers
        text = path.read_text()
        assert text.count(start) == 1
        path.write_text(self.hurried(text.replace(start, json.dumps(str(script))), call_seconds))
        self.call_seconds = call_seconds

    def hurried(self, settings: str, call_seconds: int) -> str:
        """Its settings, in which calls of the bus are given up after so long."""
        document = json.loads(settings)
        holder = document.get("mcpServers") or document["mcp"]
        holder[SERVER]["timeout"] = call_seconds * 1000
        return json.dumps(document)

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
    def configure(self, server: Server | None) -> None:
        """Writes its configuration files; without a server only where there are none."""

    @abstractmethod
    def arguments(self, server: Server | None, session: str | None) -> list[str]:
        """Of the command line."""

    @abstractmethod
    def environment(self, server: Server | None) -> dict[str, str]:
        """Variables of its own."""


class ClaudeCode(Program):
    """Claude Code."""

    application = "claude-code"
    servers = ".claude.json"
    session_key = "session_id"

    def configure(self, server: Server | None) -> None:
        """Into a file that its command line names."""
        if server is None:
            return
        command, *arguments = server.command
        entry = {"command": command, "args": arguments, "env": dict(server.environment)}
        self._servers.write_text(json.dumps({"mcpServers": {SERVER: entry}}))

    @property
    def _servers(self) -> Path:
        return self.home / "mcp.json"

    def arguments(self, server: Server | None, session: str | None) -> list[str]:
        """Only the bus' tools are allowed without asking, and its subagents."""
        resume = ["--resume", session] if session else []
        servers = ["--mcp-config", str(self._servers), "--strict-mcp-config"] if server else []
        prompt = ["--input-format", "stream-json"] if self.talks else [PROMPT]
        output = ["--output-format", "stream-json", "--verbose"]
        allowed = ["--allowedTools", f"mcp__{SERVER}", "Task", "Agent", "Bash"]
        return ["-p", *prompt, *resume, *servers, *output, *allowed]

    def environment(self, server: Server | None) -> dict[str, str]:
        """The model's address; nothing that is not needed."""
        limit = server.call_seconds if server else self.call_seconds
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
    servers = "config.toml"
    session_key = "thread_id"

    def configure(self, server: Server | None) -> None:
        """Into its home."""
        path = self.home / "config.toml"
        if server is not None or not path.exists():
            path.write_text(self._settings() + (self._table(server) if server else ""))

    def _settings(self) -> str:
        return f"""\
model = "none"
model_provider = "test"

[model_providers.test]
name = "test"
base_url = {_toml(self.model.url + "/v1")}
wire_api = "responses"
env_key = "TEST_KEY"
request_max_retries = 0
stream_max_retries = 0
"""

    def hurried(self, settings: str, call_seconds: int) -> str:
        """The server's table is the last one."""
        return f"{settings}tool_timeout_sec = {call_seconds}\n"

    @staticmethod
    def _table(server: Server) -> str:
        command, *arguments = server.command
        limit = server.call_seconds
        timeout = "" if limit is None else f"tool_timeout_sec = {limit}"
        variables = ", ".join(f"{name} = {_toml(it)}" for name, it in server.environment.items())
        return f"""
[mcp_servers.{SERVER}]
command = {_toml(command)}
args = {_toml(arguments)}
env = {{ {variables} }}
default_tools_approval_mode = "approve"
{timeout}
"""

    def arguments(self, server: Server | None, session: str | None) -> list[str]:
        """Whether the project is a repository is no matter; hooks are those of the test."""
        resume = ["resume", session] if session else []
        trust = [] if server else ["--dangerously-bypass-hook-trust"]
        free = ["--sandbox", "danger-full-access"] if self.unconfined else []
        return ["exec", *resume, *trust, *free, "--skip-git-repo-check", "--json", PROMPT]

    unconfined = False
    """Whether its shell runs without its sandbox, which keeps commands from sockets."""

    def environment(self, server: Server | None) -> dict[str, str]:
        """Its home, and a key that it insists on."""
        return {"CODEX_HOME": str(self.home), "TEST_KEY": "none"}


class GeminiCli(Program):
    """Gemini CLI."""

    application = "gemini-cli"
    servers = ".gemini/settings.json"
    names_sessions = False
    session_key = "session_id"

    def configure(self, server: Server | None) -> None:
        """Into its settings; it takes folders and tools of the test for trusted."""
        path = self.home / ".gemini/settings.json"
        if server is None and path.exists():
            return
        path.parent.mkdir(exist_ok=True)
        settings: dict[str, Any] = {
            "security": {
                "auth": {"selectedType": "gemini-api-key"},
                "folderTrust": {"enabled": False},
            },
            "telemetry": {"enabled": False},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        }
        if server is not None:
            command, *arguments = server.command
            limit = server.call_seconds
            entry = {"command": command, "args": arguments, "env": dict(server.environment)}
            timeout = {} if limit is None else {"timeout": limit * 1000}
            settings["mcpServers"] = {SERVER: {**entry, **timeout, "trust": True}}
        path.write_text(json.dumps(settings, indent=2))

    def arguments(self, server: Server | None, session: str | None) -> list[str]:
        """Tools run without asking."""
        resume = ["--resume", session] if session else []
        return ["--yolo", "-m", "gemini-2.5-flash", "-o", "stream-json", *resume, "-p", PROMPT]

    def environment(self, server: Server | None) -> dict[str, str]:
        """The model's address."""
        return {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",  # it is the process that was started
        }


class OpenCode(Program):
    """opencode."""

    application = "opencode"
    servers = ".config/opencode/opencode.json"
    names_sessions = False
    session_key = "sessionID"

    def configure(self, server: Server | None) -> None:
        """Into its settings."""
        path = self.home / ".config/opencode/opencode.json"
        if server is None and path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        options = {"baseURL": f"{self.model.url}/v1", "apiKey": "none"}
        limit = {"context": 128000, "output": 8192}
        models = {"test": {"name": "test", "tool_call": True, "limit": limit}}
        kind = {"npm": "@ai-sdk/openai-compatible", "name": "test"}
        settings: dict[str, Any] = {
            "autoupdate": False,
            "share": "disabled",
            "model": "test/test",
            "small_model": "test/test",
            "permission": "allow",
            "provider": {"test": {**kind, "options": options, "models": models}},
        }
        if server is not None:
            entry = {"type": "local", "command": list(server.command), "enabled": True}
            timeout = {} if server.call_seconds is None else {"timeout": server.call_seconds * 1000}
            variables = {"environment": dict(server.environment)}
            settings["mcp"] = {SERVER: {**entry, **timeout, **variables}}
        path.write_text(json.dumps(settings, indent=2))

    def arguments(self, server: Server | None, session: str | None) -> list[str]:
        """One prompt."""
        resume = ["--session", session] if session else []
        return ["run", *resume, "--format", "json", PROMPT]

    def environment(self, server: Server | None) -> dict[str, str]:
        """It fetches nothing."""
        names = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD")
        return {f"OPENCODE_DISABLE_{name}": "1" for name in names}


def _toml(value: str | list[str]) -> str:
    return json.dumps(value)


class Conversation:
    """A harness program at work, a context manager that leaves nothing running."""

    def __init__(
        self,
        command: list[str],
        directory: Path,
        environment: dict[str, str],
        program: Program,
        server: Server | None,
    ) -> None:
        self.program = program
        self.knows_session = program.names_sessions or server is None
        """Whether the bus is told which conversation it is."""
        self._process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE if program.talks else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.output: list[str] = []
        self._prompted = 0
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
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    @property
    def pid(self) -> int:
        """Of the program."""
        return self._process.pid

    def prompt(self, text: str) -> None:
        """What the user says next, to a program that talks, when it has done what came before."""
        assert wait(lambda: self._answered() == self._prompted), "it is still at work"
        self._prompted += 1
        message = {"type": "user", "message": {"role": "user", "content": text}}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _answered(self) -> int:
        return sum(line.startswith("{") and '"num_turns":' in line for line in list(self.output))

    def hang_up(self) -> None:
        """The user has nothing more to say."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    @property
    def session(self) -> str:
        """The conversation's id, which it tells when it starts."""
        assert wait(lambda: self._session() is not None), "no id was told"
        return self._session() or ""

    def _session(self) -> str | None:
        return next(iter(self._sessions()), None)

    @property
    def latest_session(self) -> str:
        """The id that it told last."""
        return self._sessions()[-1]

    def _sessions(self) -> list[str]:
        told = (json.loads(line) for line in list(self.output) if line.startswith("{"))
        key = self.program.session_key
        return [document[key] for document in told if key in document]

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
