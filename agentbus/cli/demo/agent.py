"""One agent of the demo: an `agentbus mcp` process and the JSON lines on its stdio.

Speaks MCP as harnesses do, without an SDK, so that the demo also shows how little it takes.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from agentbus.errors import AgentbusError, Unavailable
from agentbus.wire.error_codes import ErrorData, from_data
from agentbus.wire.lines import LineDecoder, Overlong
from agentbus.wire.rpc import MAX_LINE

REVISION: Final = "2025-11-25"
PATIENCE: Final = 40.0
"""Seconds to wait for an answer: more than the adapter's own retries take."""

CLOSE_SECONDS: Final = 3.0

_CHUNK: Final = 65536


class Agent:
    """`name` is the persistent one; (`application`, `session`) is what a resume claims again."""

    def __init__(self, name: str, application: str, session: str) -> None:
        self.name = name
        self.application = application
        self.session = session
        self._process: subprocess.Popen[bytes] | None = None
        self._lines = LineDecoder(MAX_LINE)
        self._answers: dict[int, dict[str, Any]] = {}
        self._asked = 0

    @property
    def pid(self) -> int:
        """Of the adapter process."""
        return self._running().pid

    def start(self, command: Sequence[str]) -> None:
        """Starts an adapter by `command` and does the MCP handshake."""
        self._lines, self._answers = LineDecoder(MAX_LINE), {}
        identity = ["--agent", self.name, "--application", self.application]
        self._process = subprocess.Popen(
            [*command, *identity, "--session", self.session],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        client = {"name": "agentbus-demo", "version": "1"}
        hello = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
        self.finish(self._ask("initialize", hello))
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def kill(self) -> None:
        """SIGKILL: the adapter gets no chance to say goodbye."""
        process = self._running()
        process.kill()
        self._forget(process)

    def close(self) -> None:
        """EOF on stdin, as a harness that ends; SIGKILL where that is not enough."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        try:
            process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        self._forget(process)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result of a tool call. Raises what the bus answered instead."""
        return self.outcome(self.begin(tool, **arguments))

    def begin(self, tool: str, **arguments: Any) -> int:
        """Asks without waiting; `outcome` takes the number returned."""
        return self._ask("tools/call", {"name": tool, "arguments": arguments})

    def outcome(self, number: int) -> dict[str, Any]:
        """Waits for the result of a call that `begin` has made."""
        result = self.finish(number)
        structured: dict[str, Any] = result["structuredContent"]
        if result.get("isError"):
            raise from_data(msgspec.convert(structured["error"], ErrorData))
        return structured

    def finish(self, number: int) -> dict[str, Any]:
        """Waits for the `result` of a request. Raises Unavailable when none comes."""
        deadline = time.monotonic() + PATIENCE
        while number not in self._answers:
            self._read(deadline - time.monotonic())
        answer = self._answers.pop(number)
        if "error" in answer:
            raise AgentbusError(f"{self.name}'s adapter answered: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _ask(self, method: str, params: dict[str, Any]) -> int:
        self._asked += 1
        self._write({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        return self._asked

    def _write(self, message: dict[str, Any]) -> None:
        stdin = self._running().stdin
        assert stdin is not None
        try:
            stdin.write(msgspec.json.encode(message) + b"\n")
            stdin.flush()
        except BrokenPipeError:
            raise Unavailable(f"{self.name}'s adapter has ended") from None

    def _read(self, patience: float) -> None:
        stdout = self._running().stdout
        assert stdout is not None
        readable, _, _ = select.select([stdout], [], [], max(0.0, patience))
        if not readable:
            raise Unavailable(f"{self.name}'s adapter did not answer within {PATIENCE:.0f} s")
        data = os.read(stdout.fileno(), _CHUNK)
        if not data:
            raise Unavailable(f"{self.name}'s adapter has ended")
        for line in self._lines.feed(data):
            if isinstance(line, Overlong):
                raise Unavailable(f"{self.name}'s adapter wrote a line of more than 8 MiB")
            message = msgspec.json.decode(line)
            if "method" not in message:
                self._answers[message["id"]] = message

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise Unavailable(f"{self.name} has no adapter")
        return self._process

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._process = None
