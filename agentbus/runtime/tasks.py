"""The only place where asyncio tasks are started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from agentbus.runtime import logs

_log = logs.get(__name__)

_running: Final[set[asyncio.Task[Any]]] = set()
"""The loop itself only keeps weak references."""


def start(
    coroutine: Coroutine[Any, Any, Any],
    name: str,
    *,
    on_crash: Callable[[BaseException], None] | None = None,
) -> asyncio.Task[Any]:
    """Starts a task that nobody needs to await.

    What it raises is logged under its name and then given to `on_crash`; cancelling it is no crash.
    """
    task = asyncio.get_running_loop().create_task(coroutine, name=name)
    _running.add(task)
    task.add_done_callback(lambda done: _finished(done, on_crash))
    return task


def _finished(task: asyncio.Task[Any], on_crash: Callable[[BaseException], None] | None) -> None:
    _running.discard(task)
    if task.cancelled():
        return
    error = task.exception()
    if error is None:
        return
    _log.crash("task_crashed", error, task=task.get_name())
    if on_crash is not None:
        on_crash(error)
