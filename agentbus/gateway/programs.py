"""Running the inspection command: without a shell, bounded in time and output.

The program is in a session of its own, so that what it starts can be ended with it; on Linux the
kernel ends it with the gateway, whatever happens to that. It inherits nothing but the environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, Final

from agentbus.config import KIB
from agentbus.gateway.events import Inspect, Inspected
from agentbus.runtime import platform, tasks

OUTPUT_BYTES: Final = 64 * KIB
"""Of stdout and of stderr, each."""

LOOK_SECONDS: Final = 0.005
"""Between looks whether a program that says nothing more has ended."""


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
            program = _Program(self._command)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            return failed(f"it could not be started ({reason})")
        try:
            async with asyncio.timeout(asked.seconds):
                output, code = await program.converse(asked.document)
        except TimeoutError:
            return failed(f"it did not end within {asked.seconds:g} s")
        except _OverflowError as error:
            return failed(f"it wrote more than {OUTPUT_BYTES // KIB} KiB to {error}")
        finally:
            await program.end()
        return Inspected(asked.ref, output) if code == 0 else failed(_ended(code))


class _OverflowError(Exception):
    """The program wrote too much."""


class _Program:
    """One process, and our ends of its pipes."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            start_new_session=True,
            preexec_fn=partial(platform.die_with_parent, os.getpid()),
        )
        self._pipes = [self._process.stdin, self._process.stdout, self._process.stderr]
        """Those without a transport."""
        self._transports: list[asyncio.BaseTransport] = []

    async def converse(self, document: bytes) -> tuple[bytes, int]:
        """Everything it writes to stdout, and its exit code. Raises _OverflowError."""
        stdin, stdout, stderr = self._pipes
        output, _, _ = await asyncio.gather(
            self._read(stdout, "stdout"), self._read(stderr, "stderr"), self._write(stdin, document)
        )
        return output, await self._exit_code()

    async def _read(self, pipe: IO[bytes] | None, name: str) -> bytes:
        reader = asyncio.StreamReader(OUTPUT_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        self._pipes.remove(pipe)
        transport, _ = await loop.connect_read_pipe(lambda: protocol, pipe)
        self._transports.append(transport)
        output = b""
        while part := await reader.read(OUTPUT_BYTES):
            output += part
            if len(output) > OUTPUT_BYTES:
                raise _OverflowError(name)
        return output

    async def _write(self, pipe: IO[bytes] | None, document: bytes) -> None:
        """The program may decide without reading: the rest is dropped with the pipe."""
        loop = asyncio.get_running_loop()
        self._pipes.remove(pipe)
        transport, _ = await loop.connect_write_pipe(asyncio.Protocol, pipe)
        self._transports.append(transport)
        transport.write(document)
        transport.close()

    async def _exit_code(self) -> int:
        while (code := self._process.poll()) is None:  # noqa: ASYNC110 - nothing else tells on macOS
            await asyncio.sleep(LOOK_SECONDS)
        return code

    async def end(self) -> None:
        """Leaves nothing behind of what it may have started, nor of what that may keep open."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._exit_code()
        for transport in self._transports:
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
            transport.close()
        for pipe in self._pipes:
            if pipe is not None:
                pipe.close()


def _ended(code: int) -> str:
    if code < 0:
        return f"it was ended by signal {-code}"
    return f"it ended with status {code}"
