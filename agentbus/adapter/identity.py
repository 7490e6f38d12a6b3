"""Who is calling: the session that a tool call belongs to, and the agent behind it.

Evidence, the strongest first (harnesses differ in what they supply, and change):

1. Codex names the thread and its root conversation in the `_meta` of each call.
2. `--session`, with `--application` or the client's own name.
3. What was bound last, where a harness named sessions before and does not now.
4. Claude Code's environment at start.
5. Nothing: a random session for as long as this adapter lives, never resumed.

A call that names a new root conversation moves the adapter to it; a child beside its parent moves
nothing.
"""

from __future__ import annotations

import os
from typing import Any, Final

import msgspec

from agentbus.errors import ConfigInvalid, InvalidArgument

PROJECT_FILE: Final = ".agentbus.json"
CLAUDE_SESSION: Final = "CLAUDE_CODE_SESSION_ID"
NAME_BYTES: Final = 128

CLAUDE: Final = "claude-code"
CODEX: Final = "codex"
UNNAMED: Final = "mcp"
"""The application of a client that does not say what it is."""

_APPLICATIONS: Final = {"codex-mcp-client": CODEX, "gemini-cli-mcp-client": "gemini-cli"}
"""Client names that are not the program's."""


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

    def __init__(self, given: Given) -> None:
        self._given = given
        self._client: str | None = None
        self._bound: SessionKey | None = None

    def expect(self, client: str | None) -> Caller | None:
        """Who will call, if that can be told before a call; None where only calls tell."""
        self._client = client or self._client
        if self._application() == CODEX and self._given.session is None:
            return None
        return Caller(self._root(), self._given.role)

    def caller(self, client: str | None, meta: dict[str, Any]) -> Caller:
        """Who makes this call. Raises InvalidArgument where what a harness says is no identity."""
        self._client = client or self._client
        thread = _codex_thread(meta) if self._application() == CODEX else None
        if thread is None:
            return Caller(self._root(), self._given.role)
        root = self._root() if self._given.session is not None else self._bind(thread.root)
        if thread.id == thread.root or root.child is not None:
            return Caller(root, self._given.role)
        child = SessionKey(root.application, root.native, _name("thread id", thread.id))
        return Caller(child, thread.role)

    def _bind(self, root: str) -> SessionKey:
        self._bound = SessionKey(self._application(), _name("session id", root))
        return self._bound

    def _root(self) -> SessionKey:
        given, application = self._given, self._application()
        if given.session is not None:
            return SessionKey(application, given.session, given.child)
        if self._bound is not None:
            return self._bound
        if application == CLAUDE and given.claude_session:
            return SessionKey(application, given.claude_session)
        return SessionKey(application, given.fallback)

    def _application(self) -> str:
        return application_of(self._given.application or self._client)

    @property
    def client(self) -> str | None:
        """The name that the client gave itself last."""
        return self._client


class _Thread(msgspec.Struct, frozen=True):
    id: str
    root: str
    role: str | None


def _codex_thread(meta: dict[str, Any]) -> _Thread | None:
    turn = _turn(meta.get("x-codex-turn-metadata"))
    thread = _first_text(meta.get("threadId"), turn.get("thread_id"))
    root = _first_text(meta.get("sessionId"), turn.get("session_id"), thread)
    if root is None:
        return None
    role = _first_text(turn.get("subagent_kind"), turn.get("thread_source"))
    return _Thread(thread or root, root, role and _clean(role))


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


def application_of(client: str | None) -> str:
    """The application behind the name a client gives itself."""
    if client is None:
        return UNNAMED
    return _APPLICATIONS.get(client) or _clean(client) or UNNAMED


def _clean(name: str) -> str:
    """A name within the bus' limits, made of one that somebody else chose."""
    printable = "".join(letter for letter in name if letter.isprintable()).strip()
    return printable.encode()[:NAME_BYTES].decode(errors="ignore")


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
    hint = _clean(os.path.basename(root)) if root is not None else None
    root = root or start
    try:
        file = _read_project(os.path.join(root, PROJECT_FILE))
    except ConfigInvalid as problem:
        return Project(root, hint, problem=problem)
    return Project(root, hint, file.agent, file.channels)


def _repository(directory: str) -> str | None:
    while not os.path.exists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return directory


def _read_project(path: str) -> _ProjectFile:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=_ProjectFile)
    except FileNotFoundError:
        return _ProjectFile()
    except OSError as error:
        raise ConfigInvalid(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise ConfigInvalid(
            f'{path} is not as it should be: {error}; allowed is {{"agent": a name, "channels": '
            "[names]}, both optional"
        ) from error
