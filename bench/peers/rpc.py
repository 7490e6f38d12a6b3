"""Raw JSON-RPC clients of MCP servers, one request in flight each: they cost what the bytes cost.

`begin` writes a request and `finish` reads its answer, so that one loop can drive several; `call`
does both. A result with `isError`, and an error, raise Refused.
"""

from __future__ import annotations

import http.client
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

REVISION: Final = "2025-06-18"
BOUND: Final = 60.0
"""Seconds that one answer may take over HTTP, and that a server may take to end."""


class Refused(Exception):
    """What the server said instead of a result."""


class Client:
    """What the two transports share."""

    pid: int
    began: float
    last = 0
    pushed = 0
    """Lines of the server's own that were passed over so far."""

    def begin(self, method: str, params: Mapping[str, Any]) -> None:
        """Writes a request."""
        self.last += 1
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})

    def finish(self) -> dict[str, Any]:
        """The result of the request that was begun."""
        return result_of(self.answer())

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        self.begin(method, params)
        return self.finish()

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def size_of(self, method: str) -> int:
        """Bytes of the answer to a request without arguments."""
        self.begin(method, {})
        return len(self.answer())

    def greet(self, name: str) -> dict[str, Any]:
        """The first half of the handshake; the server's result."""
        client = {"name": name, "version": "1"}
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
        return self.ask("initialize", params)

    def ready(self) -> None:
        """The second half."""
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, document: Mapping[str, Any]) -> None:
        """Sends a document."""
        raise NotImplementedError

    def answer(self) -> bytes:
        """The whole answer to the request that was begun."""
        raise NotImplementedError

    def fileno(self) -> int:
        """Readable once there is an answer."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends what was started."""
        raise NotImplementedError


class Stdio(Client):
    """A server on pipes; its stderr goes nowhere."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], directory: str
    ) -> None:
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            env=environment,
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._lines: list[bytes] = []
        self._rest = b""
        self.pid = self._process.pid

    def fileno(self) -> int:
        return self._stdout.fileno()

    def write(self, document: Mapping[str, Any]) -> None:
        self._stdin.write(msgspec.json.encode(document) + b"\n")
        self._stdin.flush()

    def answer(self) -> bytes:
        while True:
            while self._lines:
                line = self._lines.pop(0)
                if msgspec.json.decode(line, type=Head).id == self.last:
                    return line
                self.pushed += 1
            data = os.read(self.fileno(), 1 << 18)
            if not data:
                raise EOFError(f"{self._process.args} ended before it answered")
            *self._lines, self._rest = (self._rest + data).split(b"\n")

    def close(self) -> None:
        self._stdin.close()
        try:
            self._process.wait(0.5)  # some do not end with their stdin
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()


class Http(Client):
    """A connection to a server that speaks streamable HTTP on loopback; `pid` is the server's."""

    def __init__(self, port: int, path: str, pid: int) -> None:
        self.began = time.perf_counter()
        self.pid = pid
        self._path = path
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
        }

    def fileno(self) -> int:
        return self._connection.sock.fileno()

    def write(self, document: Mapping[str, Any]) -> None:
        body = msgspec.json.encode(document)
        sock = self._connection.sock
        if sock is not None and select.select([sock], [], [], 0)[0]:
            self._connection.close()  # the server hangs up after a while; `request` connects again
        self._connection.request("POST", self._path, body, self._headers)
        if "id" not in document:
            self._connection.getresponse().read()

    def answer(self) -> bytes:
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise Refused(f"HTTP {response.status}: {body[:200]!r}")
        session = response.headers.get("Mcp-Session-Id")
        if session:
            self._headers["Mcp-Session-Id"] = session
        if response.headers.get_content_type() != "text/event-stream":
            return body
        events = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
        return next(
            event for event in events if msgspec.json.decode(event, type=Head).id == self.last
        )

    def close(self) -> None:
        self._connection.close()


class Head(msgspec.Struct):
    """As much of a message as tells whose answer it is."""

    id: int | str | None = None


def result_of(line: bytes) -> dict[str, Any]:
    """Of an answer. Raises Refused."""
    answer = msgspec.json.decode(line)
    if "result" not in answer or answer["result"].get("isError"):
        raise Refused(line[:400].decode(errors="replace"))
    result: dict[str, Any] = answer["result"]
    return result


def text_of(result: Mapping[str, Any]) -> str:
    """The text of a tool's result."""
    return "".join(part.get("text", "") for part in result["content"])


def json_of(result: Mapping[str, Any]) -> Any:
    """A tool's result that is JSON in its text."""
    try:
        return msgspec.json.decode(text_of(result))
    except msgspec.DecodeError as error:
        raise Refused(text_of(result)[:400]) from error
