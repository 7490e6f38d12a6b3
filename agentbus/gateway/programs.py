"""Running the inspection command: without a shell, bounded in time and output.

The program is in a session of its own, so that all it starts can be ended with it; on Linux the
kernel ends it with the gateway, whatever happens to that. It inherits nothing but the environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from agentbus.config import KIB
from agentbus.gateway.events import Inspect, Inspected
from agentbus.runtime import platform, tasks

OUTPUT_BYTES: Final = 64 * KIB
"""Of stdout and of stderr, each."""


class _Overflow(Exception):
    """The program wrote too much."""


class Programs:
    """The runs under way. Each is answered exactly once, unless it is stopped before."""

    def __init__(self, command: Sequence[str], on_end: Callable[[Inspected], None]) -> None:
        self._command = command
        self._on_end = on_end
        self._runs: dict[int, asyncio.Task[None]] = {}

    def run(self, asked: Inspect) -> None:
        """Begins a run."""
        self._runs[asked.ref] = tasks.start(self._run(asked), "inspect")

    def stop(self, ref: int) -> None:
        """Ends a run that nobody waits for."""
        run = self._runs.pop(ref, None)
        if run is not None:
            run.cancel()

    async def close(self) -> None:
        """Ends all."""
        runs = list(self._runs.values())
        for ref in list(self._runs):
            self.stop(ref)
        await asyncio.gather(*runs, return_exceptions=True)

    async def _run(self, asked: Inspect) -> None:
        ended = await self._inspect(asked)
        if self._runs.pop(asked.ref, None) is not None:
            self._on_end(ended)

    async def _inspect(self, asked: Inspect) -> Inspected:
        def failed(why: str) -> Inspected:
            return Inspected(asked.ref, b"", why)

        try:
            process = await self._start()
        except (OSError, ValueError) as error:
            return failed(f"it could not be started ({error})")
        try:
            async with asyncio.timeout(asked.seconds):
                output, code = await _converse(process, asked.document)
        except TimeoutError:
            return failed(f"it did not end within {asked.seconds:g} s")
        except _Overflow as overflow:
            return failed(f"it wrote more than {OUTPUT_BYTES // KIB} KiB to {overflow}")
        finally:
            _end(process)
        return Inspected(asked.ref, output) if code == 0 else failed(_ended(code))

    async def _start(self) -> Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd="/",
            limit=OUTPUT_BYTES,
            start_new_session=True,
            preexec_fn=partial(platform.die_with_parent, os.getpid()),
        )


async def _converse(process: Process, document: bytes) -> tuple[bytes, int]:
    """Everything it writes to stdout, and its exit code. Raises _Overflow."""
    assert process.stdout is not None
    assert process.stderr is not None
    output, _, _ = await asyncio.gather(
        _read(process.stdout, "stdout"),
        _read(process.stderr, "stderr"),
        _write(process, document),
    )
    return output, await process.wait()


async def _write(process: Process, document: bytes) -> None:
    """A program may decide without reading."""
    stdin = process.stdin
    assert stdin is not None
    with contextlib.suppress(ConnectionError):
        stdin.write(document)
        await stdin.drain()
    stdin.close()


async def _read(stream: asyncio.StreamReader, name: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(OUTPUT_BYTES):
        parts.append(part)
        size += len(part)
        if size > OUTPUT_BYTES:
            raise _Overflow(name)
    return b"".join(parts)


def _end(process: Process) -> None:
    """Leaves nothing behind of what it may have started, nor of what that may keep open."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process._transport.close()  # type: ignore[attr-defined]


def _ended(code: int) -> str:
    if code < 0:
        return f"it was ended by signal {-code}"
    return f"it ended with status {code}"
