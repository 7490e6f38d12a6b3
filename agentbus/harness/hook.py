"""`agentbus hook NAME`: what harnesses run at certain moments, with a JSON object on stdin.

    claude-stop, codex-stop, gemini-stop   the agent is about to stop: it is kept at work while
                                           messages wait
    gemini-session                         a conversation begins, is resumed or cleared: its id is
                                           left for the adapter, which is not told otherwise

A hook is quick, starts no daemon, and fails open: whatever goes wrong, it says nothing and ends
with 0, so that the harness goes on as if it were not there. It tells how many messages wait, never
what is in them or where they are: what others wrote reaches an agent through `recv` alone.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from agentbus.client.client import Client
from agentbus.config import load
from agentbus.runtime import rendezvous
from agentbus.runtime.paths import locate

ANSWER_SECONDS: Final = 1.5
"""What the bus may take to answer each question; a turn of an agent waits for it."""

MAX_INPUT: Final = 4 * 1024 * 1024
"""Bytes of stdin that are read; the agent's last words are among them."""

SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh"})

REASON: Final = (
    "{count} undelivered on agentbus. Call the agentbus tool recv to read what others sent, deal "
    "with it as far as it concerns your task, and finish then."
)


class Moment(msgspec.Struct, frozen=True):
    """What a harness says of the moment; members that are missing or odd make the hook silent."""

    session_id: str
    stop_hook_active: bool = False


def main(arguments: Sequence[str]) -> int:
    """Always 0."""
    with contextlib.suppress(Exception):  # whatever it is: the harness is to go on
        _run(arguments)
    return 0


def _run(arguments: Sequence[str]) -> None:
    name, *options = arguments or [""]
    hook = HOOKS.get(name)
    if hook is None or sys.stdin is None or sys.stdin.isatty():
        return
    moment = msgspec.json.decode(_input(), type=Moment)
    answer = hook(moment, _config(options))
    if answer is not None:
        sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
        sys.stdout.flush()


def _input() -> bytes:
    return sys.stdin.buffer.read(MAX_INPUT)


def _config(options: Sequence[str]) -> str | None:
    return options[1] if len(options) > 1 and options[0] == "--config" else None


def _stop(application: str, decision: str) -> Callable[[Moment, str | None], dict[str, Any] | None]:
    """Keeps the agent at work, once a turn: `stop_hook_active` says that it was kept already."""

    def hook(moment: Moment, config: str | None) -> dict[str, Any] | None:
        if moment.stop_hook_active:
            return None
        count = undelivered(application, moment.session_id, config)
        if not count:
            return None
        counted = "1 message is" if count == 1 else f"{count} messages are"
        return {"decision": decision, "reason": REASON.format(count=counted)}

    return hook


def undelivered(application: str, session: str, config: str | None) -> int:
    """How many messages wait for a session. Raises what the bus does."""
    path = locate(load(config).settings, os.environ).socket
    with Client(path, ANSWER_SECONDS) as client:
        client.hello()
        told = client.inbox(application=application, session=session)
    return sum(entry.undelivered for entry in told.channels)


def _gemini_session(moment: Moment, config: str | None) -> dict[str, Any] | None:
    paths = locate(load(config).settings, os.environ)
    rendezvous.leave(paths.runtime_directory, _harness(), moment.session_id)
    return None


def _harness() -> int:
    """The process that runs this hook, by way of a shell or not."""
    psutil: Any = importlib.import_module("psutil")  # heavy, and seldom needed
    parent = psutil.Process(os.getppid())
    pid: int = parent.ppid() if parent.name() in SHELLS else parent.pid
    return pid


HOOKS: Final[dict[str, Callable[[Moment, str | None], dict[str, Any] | None]]] = {
    "claude-stop": _stop("claude-code", "block"),
    "codex-stop": _stop("codex", "block"),
    "gemini-stop": _stop("gemini-cli", "deny"),
    "gemini-session": _gemini_session,
}
