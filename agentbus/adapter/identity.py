"""Who is calling: the session that a tool call belongs to, and the agent behind it.

Evidence, the strongest first (harnesses differ in what they supply, and change):

1. A hook of Claude Code has bound the call (`bindings`); Codex names the thread and its root
   conversation in the `_meta` of each call; a plugin of opencode adds an argument to it.
2. `--session`, with `--application` or the client's own name.
3. What was bound last, where a harness named sessions before and does not now.
4. Claude Code's environment at start; what a session hook of Gemini CLI has left (`rendezvous`).
5. Nothing: a random session for as long as this adapter lives, never resumed.

What was given at start is the root, whatever a call names; calls may still show subagents of it. A
call that names a new root conversation moves the adapter to it; a child beside its parent moves
nothing. The program is the one that made the first call: another handshake on the same pipe, under
another name, is answered and moves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from agentbus.adapter.bindings import TOOL_USE, Bindings, Thread
from agentbus.errors import ConfigInvalid, InvalidArgument
from agentbus.runtime import files

PROJECT_FILE: Final = ".agentbus.json"
PROJECT_FILE_BYTES: Final = 64 * 1024
CLAUDE_SESSION: Final = "CLAUDE_CODE_SESSION_ID"
NAME_BYTES: Final = 128

CLAUDE: Final = "claude-code"
CODEX: Final = "codex"
GEMINI: Final = "gemini-cli"
OPENCODE: Final = "opencode"
UNNAMED: Final = "mcp"
"""The application of a client that does not say what it is."""

_APPLICATIONS: Final = {"codex-mcp-client": CODEX, "gemini-cli-mcp-client": GEMINI}
"""Client names that are not the program's."""

_SPAWNED: Final = ("thread_spawn", "collab_spawn")
"""Codex' kinds of subagents that say nothing of what they are for."""


CALLER: Final = "agentbus_caller"
"""The argument that opencode's plugin adds: an object with `session`, and of a subagent `child` and
`role`. No schema has it, so that no model is told of it."""


class SessionKey(msgspec.Struct, frozen=True):
    """What identifies a session: the root conversation, and in it a subagent."""

    application: str
    native: str
    child: str | None = None


class Caller(msgspec.Struct, frozen=True):
    """A session and what is told with it when it registers."""

    key: SessionKey
    role: str | None = None


class Project(msgspec.Struct, frozen=True):
    """The repository around the adapter; `problem` is why its project file cannot be used."""

    root: str
    hint: str | None = None
    agent: str | None = None
    channels: list[str] | None = None
    problem: ConfigInvalid | None = None


class Given(msgspec.Struct, frozen=True):
    """What was fixed when the adapter was started; `fallback` is its random session."""

    fallback: str
    agent: str | None = None
    application: str | None = None
    session: str | None = None
    child: str | None = None
    role: str | None = None
    claude_session: str | None = None


class _ProjectFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    agent: str | None = None
    channels: list[str] | None = None


class Identity:
    """Finds the caller of each tool call."""

    def __init__(self, given: Given, rendezvous: Callable[[], str | None] = lambda: None) -> None:
        self._given = given
        self._rendezvous = rendezvous
        self._client: str | None = None
        self._used = False
        """Whether a call was made: whose it was is settled with it."""
        self._bindings = Bindings()
        self._bound: str | None = None
        """The root conversation that was named last."""

    def expect(self, client: str | None) -> Caller | None:
        """Who will call, if that can be told before a call; None where only calls tell."""
        self._name_client(client)
        if self._application() == CODEX and self._given.session is None:
            return None
        return Caller(self._root(), self._given.role)

    def bind(self, arguments: dict[str, Any], now: float) -> None:
        """A hook says whose the call with that id is. Raises InvalidArgument."""
        thread = Thread(
            _name("session_id", arguments["session_id"]),
            _child(arguments.get("agent_id")),
            _said(arguments.get("agent_type")),
        )
        self._bindings.add(arguments["tool_use_id"], thread, now)
        self._bound = thread.root

    def in_band(
        self, client: str | None, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], Thread | None]:
        """A call's arguments without what opencode's plugin has added, and what that says."""
        self._name_client(client)
        if self._application() != OPENCODE or CALLER not in arguments:
            return arguments, None
        said = arguments[CALLER]
        rest = {name: value for name, value in arguments.items() if name != CALLER}
        return rest, _added_thread(said) if isinstance(said, dict) else None

    def caller(
        self, client: str | None, meta: dict[str, Any], now: float, said: Thread | None = None
    ) -> Caller:
        """Who makes this call, `said` being what `in_band` has found. Raises InvalidArgument where
        what a harness says is no identity."""
        self._name_client(client)
        self._used = True
        thread = said or self._bindings.find(meta.get(TOOL_USE), now)
        if thread is None and self._application() == CODEX:
            thread = _codex_thread(meta)
        if thread is not None:
            self._bound = _name("session id", thread.root)
        root = self._root()
        if thread is None or thread.child is None or root.child is not None:
            return Caller(root, self._given.role)
        child = SessionKey(root.application, root.native, _name("thread id", thread.child))
        return Caller(child, thread.role)

    def _name_client(self, client: str | None) -> None:
        """One process serves one program: another name after a call does not move its session."""
        if not self._used:
            self._client = client or self._client

    def _root(self) -> SessionKey:
        given, application = self._given, self._application()
        if given.session is not None:
            return SessionKey(application, given.session, given.child)
        if self._bound is not None:
            return SessionKey(application, self._bound)
        told = self._rendezvous() if application == GEMINI else None
        if told:
            return SessionKey(application, _name("session id", told))
        if application == CLAUDE and given.claude_session:
            return SessionKey(application, given.claude_session)
        return SessionKey(application, given.fallback)

    def _application(self) -> str:
        return application_of(self._given.application or self._client)

    @property
    def client(self) -> str | None:
        """The name that the client gave itself before its first call, or with it."""
        return self._client


def _added_thread(said: dict[str, Any]) -> Thread | None:
    root, child = _said(said.get("session")), _said(said.get("child"))
    if root is None:
        return None
    return Thread(root, None if child == root else child, _said(said.get("role")))


def _codex_thread(meta: dict[str, Any]) -> Thread | None:
    """A subagent's thread names its parent; its session is the root's."""
    turn = _turn(meta.get("x-codex-turn-metadata"))
    thread = _first_text(meta.get("threadId"), turn.get("thread_id"))
    root = _first_text(meta.get("sessionId"), turn.get("session_id"))
    if root in (None, thread) and turn.get("subagent_kind"):
        root = _first_text(turn.get("parent_thread_id"), thread)
    root = root or thread
    if root is None:
        return None
    role = _codex_role(turn)
    return Thread(root, None if thread in (None, root) else thread, role and _clean(role))


def _codex_role(turn: dict[str, Any]) -> str | None:
    """What a subagent is for: its role or name, where it was given one, which may be a path of all
    names from the root on; else what Codex calls its kind, unless that tells only how it began."""
    kind, path = turn.get("subagent_kind"), _first_text(turn.get("agent_name")) or ""
    return _first_text(
        turn.get("agent_role"),
        path.rpartition("/")[2],
        turn.get("agent_nickname"),
        None if kind in _SPAWNED else kind,
        turn.get("thread_source"),
    )


def _turn(value: Any) -> dict[str, Any]:
    """The turn's metadata, an object or the JSON of one."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return {}
    return value if isinstance(value, dict) else {}


def _first_text(*values: Any) -> str | None:
    return next((value for value in values if isinstance(value, str) and value), None)


def _said(value: Any) -> str | None:
    """What a hook fills in; a placeholder that it left is nothing."""
    text = _first_text(value)
    return None if text is None or text.startswith("${") else _clean(text) or None


def _child(value: Any) -> str | None:
    return _name("agent_id", value) if _said(value) else None


@lru_cache(maxsize=8)  # asked several times a call, of one client as a rule
def application_of(client: str | None) -> str:
    """The application behind the name a client gives itself."""
    if client is None:
        return UNNAMED
    return _APPLICATIONS.get(client) or _clean(client) or UNNAMED


def _clean(name: str) -> str:
    """A name within the bus' limits, made of one that somebody else chose."""
    if not name.isprintable():
        name = "".join(letter for letter in name if letter.isprintable())
    return name.strip().encode()[:NAME_BYTES].decode(errors="ignore")


def _name(what: str, value: str) -> str:
    if len(value.encode()) > NAME_BYTES or not value.isprintable():
        raise InvalidArgument(
            f"the {what} that the harness sent is no name: allowed are 1 to {NAME_BYTES} bytes "
            "without control characters"
        )
    return value


def find_project(directory: str) -> Project:
    """The repository of a directory: the nearest one above with `.git`, else the directory."""
    start = os.path.realpath(directory)
    root = _repository(start)
    hint = _clean(_text(os.path.basename(root))) if root is not None else None
    root = root or start
    try:
        file = _read_project(os.path.join(root, PROJECT_FILE))
    except ConfigInvalid as problem:
        return Project(_text(root), hint, problem=problem)
    return Project(_text(root), hint, file.agent, file.channels)


def _text(path: str) -> str:
    """A path that can be sent: names of files are bytes, and need not be UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _repository(directory: str) -> str | None:
    while not os.path.exists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return directory


def _read_project(path: str) -> _ProjectFile:
    """Whoever made the repository chose what lies there."""
    try:
        return msgspec.json.decode(files.content(path, PROJECT_FILE_BYTES), type=_ProjectFile)
    except FileNotFoundError:
        return _ProjectFile()
    except OSError as error:
        raise ConfigInvalid(f"{_text(path)} cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise ConfigInvalid(
            f'{_text(path)} is not as it should be: {error}; allowed is {{"agent": a name, '
            '"channels": [names]}, both optional'
        ) from error
