"""`agentbus mcp` as a harness runs it: a process on pipes, lines in and out."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

REVISION = "2025-11-25"
BOUND = 40.0
"""Longer than the 30 s for which an adapter retries by itself."""


class ToolError(Exception):
    """A result with `isError`."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: str = error["code"]
        self.retryable: bool = error["retryable"]
        self.retry_after_ms: int = error.get("retry_after_ms", 0)


class Adapter:
    """One adapter. Raises EOFError where it has ended."""

    def __init__(self, environment: Mapping[str, str], *arguments: str, greet: bool = True) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "agentbus", "mcp", *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._buffer = bytearray()
        self._answers: dict[Any, dict[str, Any]] = {}
        self._last = 0
        if greet:
            self.greet()

    def __enter__(self) -> Adapter:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def greet(self) -> None:
        """The handshake of a client."""
        client = {"name": "tests", "version": "1"}
        self.ask("initialize", protocolVersion=REVISION, capabilities={}, clientInfo=client)
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def write(self, data: bytes) -> None:
        """Bytes as they are. Raises EOFError where nobody reads them."""
        try:
            self._stdin.write(data)
            self._stdin.flush()
        except BrokenPipeError as error:
            raise EOFError("the adapter has ended") from error

    def request(self, method: str, **params: Any) -> int:
        """Writes a request; its id."""
        self._last += 1
        document = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self.write(msgspec.json.encode(document) + b"\n")
        return self._last

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a request."""
        answer = self.answer(self.request(method, **params))
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result of a tool. Raises ToolError."""
        return self.structured(self.ask("tools/call", name=tool, arguments=arguments))

    def structured(self, result: dict[str, Any]) -> dict[str, Any]:
        """Of a tool's result. Raises ToolError."""
        content: dict[str, Any] = result["structuredContent"]
        if result.get("isError"):
            raise ToolError(content["error"])
        return content

    def answer(self, number: int | str | None, bound: float = BOUND) -> dict[str, Any]:
        """The whole response to a request written before; None: the error without an id."""
        deadline = time.monotonic() + bound
        while number not in self._answers:
            for line in self._lines(deadline):
                document = msgspec.json.decode(line)
                if "method" not in document:
                    self._answers[document.get("id")] = document
        return self._answers.pop(number)

    def said(self, number: int | str) -> dict[str, Any] | None:
        """The response to a request if it has come before the answers that were waited for."""
        return self._answers.pop(number, None)

    def _lines(self, deadline: float) -> list[bytes]:
        if not self._selector.select(max(0.0, deadline - time.monotonic())):
            raise TimeoutError("the adapter did not answer in time")
        data = os.read(self._stdout.fileno(), 1 << 18)
        if not data:
            raise EOFError("the adapter has ended")
        *lines, rest = (bytes(self._buffer) + data).split(b"\n")
        self._buffer = bytearray(rest)
        return lines

    def kill(self) -> None:
        """`kill -9`; safe beside a thread that waits for an answer, which meets EOFError."""
        self._process.send_signal(signal.SIGKILL)

    def end(self) -> int:
        """Closes stdin and waits; the exit code."""
        with suppress(BrokenPipeError):
            self._stdin.close()
        code = self._process.wait(BOUND)
        self._selector.close()
        self._stdout.close()
        return code
