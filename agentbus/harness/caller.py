"""Which session a command belongs to that an agent runs in its shell, by what its harness set."""

from __future__ import annotations

from collections.abc import Mapping

from agentbus.client.waiting import Session
from agentbus.errors import InvalidArgument


def from_environment(environ: Mapping[str, str]) -> Session:
    """Raises InvalidArgument where no harness says, or two of them do: one runs in the other."""
    found = [session for session in (_claude(environ), _codex(environ)) if session is not None]
    if len(found) == 1:
        return found[0]
    why = "several harnesses say" if found else "no harness says here"
    raise InvalidArgument(
        f"{why} whose session this is; give --application and --session, as whoami tells them"
    )


def _claude(environ: Mapping[str, str]) -> Session | None:
    session = environ.get("CLAUDE_CODE_SESSION_ID")
    return Session("claude-code", session) if session else None


def _codex(environ: Mapping[str, str]) -> Session | None:
    """A subagent's thread is a child of the session."""
    thread = environ.get("CODEX_THREAD_ID")
    root = environ.get("CODEX_SESSION_ID") or thread
    if not root:
        return None
    return Session("codex", root, None if thread in (None, root) else thread)
