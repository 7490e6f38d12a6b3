"""The harnesses: where each keeps its configuration, and what of ours belongs there.

    program      its server is in                      hooks are in
    Claude Code  ~/.claude.json (mcpServers)           ~/.claude/settings.json
    Codex        ~/.codex/config.toml (mcp_servers)    ~/.codex/hooks.json
    Gemini CLI   ~/.gemini/settings.json (mcpServers)  the same
    opencode     ~/.config/opencode/opencode.json (mcp)  plugins/agentbus.js beside it

Each program has a variable that moves these. Facts measured on the real programs stand in
docs/reference/harnesses.md; they change often.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from agentbus.harness.changes import (
    BIND,
    HOOK,
    SERVER,
    Change,
    JsonHooks,
    JsonServer,
    OwnFile,
    TomlServer,
)

HOOK_SECONDS: Final = 5
"""How long a harness waits for a hook of ours, which ends by itself long before."""


class Start(msgspec.Struct, frozen=True):
    """How harnesses start this program: the words before a subcommand, options for `mcp` and hooks,
    and variables that name the bus where it is not the usual one."""

    command: Sequence[str]
    options: Sequence[str] = ()
    variables: Mapping[str, str] = {}

    @property
    def words(self) -> list[str]:
        """Of the MCP server."""
        return [*self.command, "mcp", *self.options]

    def hook(self, name: str) -> str:
        """A hook as a line for a shell."""
        given = [f"{key}={value}" for key, value in sorted(self.variables.items())]
        line = shlex.join([*self.command, HOOK, name, *self.options])
        return f"env {shlex.join(given)} {line}" if given else line


class Machine(msgspec.Struct, frozen=True):
    """Whose configuration it is."""

    home: str
    environ: Mapping[str, str] = {}

    def at(self, variable: str, *usual: str) -> str:
        """The directory that a variable names, else one below the home."""
        given = self.environ.get(variable)
        return os.path.abspath(given) if given else os.path.join(self.home, *usual)


class Target(msgspec.Struct, frozen=True):
    """A file, and what of ours belongs in it."""

    path: str
    changes: tuple[Change, ...]


class Harness(msgspec.Struct, frozen=True):
    """A program that agents run in.

    `homes` are places that are there when it was used, `advice` is what a user has to do besides.
    """

    name: str
    title: str
    executable: str
    homes: Callable[[Machine], list[str]]
    targets: Callable[[Machine, Start], list[Target]]
    advice: str = ""

    def is_found(self, machine: Machine) -> bool:
        """Whether it is installed, or was used."""
        path = machine.environ.get("PATH")
        program = shutil.which(self.executable, path=path) if path else None
        return program is not None or any(map(os.path.exists, self.homes(machine)))


def _entry(start: Start, **more: Any) -> dict[str, Any]:
    command, *arguments = start.words
    variables = {"env": dict(start.variables)} if start.variables else {}
    return {**more, "command": command, "args": arguments, **variables}


def _command(start: Start, hook: str, timeout: int, **more: Any) -> dict[str, Any]:
    command = {"type": "command", "command": start.hook(hook), "timeout": timeout}
    return {"hooks": [{**more, **command}]}


# ---- Claude Code


def _claude_directory(machine: Machine) -> str:
    return machine.at("CLAUDE_CONFIG_DIR", ".claude")


def _claude_state(machine: Machine) -> str:
    """Where Claude Code keeps what it knows of itself, user-wide servers too."""
    older = os.path.join(_claude_directory(machine), ".config.json")
    if os.path.isfile(older) and os.path.getsize(older):
        return older
    return os.path.join(machine.at("CLAUDE_CONFIG_DIR"), ".claude.json")


def _claude(machine: Machine, start: Start) -> list[Target]:
    said = ("session_id", "tool_use_id", "agent_id", "agent_type")
    bind = {
        "type": "mcp_tool",
        "server": SERVER,
        "tool": BIND,
        "input": {name: f"${{{name}}}" for name in said},
    }
    hooks = (
        JsonHooks("PreToolUse", {"matcher": f"mcp__{SERVER}__.*", "hooks": [bind]}),
        JsonHooks("Stop", _command(start, "claude-stop", HOOK_SECONDS)),
    )
    settings = os.path.join(_claude_directory(machine), "settings.json")
    server = JsonServer("mcpServers", _entry(start, type="stdio"))
    return [Target(_claude_state(machine), (server,)), Target(settings, hooks)]


# ---- Codex


def _codex_home(machine: Machine) -> str:
    return machine.at("CODEX_HOME", ".codex")


def _codex(machine: Machine, start: Start) -> list[Target]:
    home = _codex_home(machine)
    server = TomlServer("mcp_servers", _entry(start))
    stop = JsonHooks("Stop", _command(start, "codex-stop", HOOK_SECONDS))
    return [
        Target(os.path.join(home, "config.toml"), (server,)),
        Target(os.path.join(home, "hooks.json"), (stop,)),
    ]


# ---- Gemini CLI


def _gemini_directory(machine: Machine) -> str:
    return os.path.join(machine.at("GEMINI_CLI_HOME"), ".gemini")


def _gemini(machine: Machine, start: Start) -> list[Target]:
    """Its hooks count milliseconds."""
    milliseconds = HOOK_SECONDS * 1000
    changes = (
        JsonServer("mcpServers", _entry(start)),
        JsonHooks("SessionStart", _command(start, "gemini-session", milliseconds, name="agentbus")),
        JsonHooks("AfterAgent", _command(start, "gemini-stop", milliseconds, name="agentbus")),
    )
    return [Target(os.path.join(_gemini_directory(machine), "settings.json"), changes)]


# ---- opencode


def _opencode_directory(machine: Machine) -> str:
    return os.path.join(machine.at("XDG_CONFIG_HOME", ".config"), "opencode")


def _opencode(machine: Machine, start: Start) -> list[Target]:
    """Of its files it reads all, and writes the first that is there."""
    home = _opencode_directory(machine)
    names = ("opencode.jsonc", "opencode.json", "config.json")
    paths = [os.path.join(home, name) for name in names]
    settings = next((path for path in paths if os.path.exists(path)), paths[1])
    variables = {"environment": dict(start.variables)} if start.variables else {}
    entry = {"type": "local", "command": start.words, "enabled": True, **variables}
    plugin = os.path.join(home, "plugins", "agentbus.js")
    return [
        Target(settings, (JsonServer("mcp", entry),)),
        Target(plugin, (OwnFile(resource("opencode.js")),)),
    ]


def resource(name: str) -> str:
    """A file that is installed beside this module."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


HARNESSES: Final = (
    Harness(
        name="claude-code",
        title="Claude Code",
        executable="claude",
        homes=lambda machine: [_claude_directory(machine), _claude_state(machine)],
        targets=_claude,
    ),
    Harness(
        name="codex",
        title="Codex",
        executable="codex",
        homes=lambda machine: [_codex_home(machine)],
        targets=_codex,
        advice="Codex runs a new hook only once you trust it: it asks at its start, or type /hooks",
    ),
    Harness(
        name="gemini-cli",
        title="Gemini CLI",
        executable="gemini",
        homes=lambda machine: [_gemini_directory(machine)],
        targets=_gemini,
    ),
    Harness(
        name="opencode",
        title="opencode",
        executable="opencode",
        homes=lambda machine: [_opencode_directory(machine)],
        targets=_opencode,
    ),
)

NAMES: Final = tuple(harness.name for harness in HARNESSES)
