"""Which session a command belongs to that an agent runs in its shell.

Claude Code   CLAUDE_CODE_SESSION_ID, which it sets in its shell
Codex         CODEX_SESSION_ID (the root) and CODEX_THREAD_ID, likewise
Gemini CLI    what its session hook has left for the process above
opencode      OPENCODE_AGENTBUS_SESSION and _CHILD, which the plugin sets in its shell
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from agentbus.client.waiting import Session
from agentbus.errors import InvalidArgument
from agentbus.runtime import rendezvous


def find_session(environ: Mapping[str, str], runtime_directory: str) -> Session:
    """Raises InvalidArgument where no harness says, or two of them do: one runs in the other."""
    found = [session for session in _told(environ, runtime_directory) if session is not None]
    if len(found) == 1:
        return found[0]
    why = "several harnesses say" if found else "no harness says here"
    raise InvalidArgument(
        f"{why} whose session this is; give --application and --session, as whoami tells them"
    )


def _told(environ: Mapping[str, str], runtime_directory: str) -> Iterator[Session | None]:
    yield _session("claude-code", environ.get("CLAUDE_CODE_SESSION_ID"))
    thread = environ.get("CODEX_THREAD_ID")
    yield _session("codex", environ.get("CODEX_SESSION_ID") or thread, thread)
    yield _session("gemini-cli", _left(runtime_directory))
    root, child = (environ.get(f"OPENCODE_AGENTBUS_{part}") for part in ("SESSION", "CHILD"))
    yield _session("opencode", root, child)


def _session(application: str, root: str | None, thread: str | None = None) -> Session | None:
    """A thread that is not the root is a child."""
    if not root:
        return None
    return Session(application, root, None if thread in (None, "", root) else thread)


def _left(runtime_directory: str) -> str | None:
    if not os.path.isdir(os.path.join(runtime_directory, rendezvous.DIRECTORY)):
        return None
    psutil: Any = importlib.import_module("psutil")
    pids = (each.pid for each in psutil.Process().parents())
    return next(filter(None, (rendezvous.find(runtime_directory, pid) for pid in pids)), None)
