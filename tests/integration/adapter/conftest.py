"""Real adapter processes between a test and a daemon that says what the test wants."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

BOUND = 20.0
"""Seconds after which something that a test waits for counts as missing."""

COMMAND = [sys.executable, "-m", "agentbus", "mcp", "--application", "tests", "--session", "S"]


class Daemon:
    """A listening socket where adapters look for one, and the connection it has accepted."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            **os.environ,
            "HOME": str(directory),
            "AGENTBUS_RUNTIME_DIR": str(directory / "run"),
        }
        (directory / "run").mkdir(mode=0o700)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.settimeout(BOUND)
        self._listener.bind(str(directory / "run" / "bus.sock"))
        self._listener.listen(8)
        self._connection: socket.socket | None = None
        self._lines: list[dict[str, Any]] = []
        self._rest = b""
        self.attachment = "1.1"
        self.epoch = "1.0"

    def close(self) -> None:
        self.hang_up()
        self._listener.close()

    def hang_up(self) -> None:
        """Cuts the connection; the adapter may come again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._lines.clear()
        self._rest = b""

    def greet(self, instance: str = "i") -> None:
        """Accepts the adapter, its hello and its session."""
        self._connection, _ = self._listener.accept()
        self._connection.settimeout(BOUND)
        self.answer("hello", protocol=1, version="0", instance=instance, state="ready")
        self.register()

    def register(self) -> None:
        subscription = {
            "subscription": 1,
            "channel": "general",
            "position": 0,
            "expires_at": "2026-12-03T00:00:00.000Z",
            "include_own": False,
        }
        self.answer(
            "register",
            attachment=self.attachment,
            display_name="Sam",
            agent="Sam",
            resumed=False,
            epoch=self.epoch,
            subscriptions=[subscription],
        )

    def expect(self, method: str) -> dict[str, Any]:
        """The next request of this method; heartbeats and renewals before it are answered."""
        while True:
            request = self._next()
            if request["method"] == method:
                return request
            assert request["method"] in ("heartbeat", "renew"), request
            self._answer_itself(request)

    def answer(self, method: str, **result: Any) -> dict[str, Any]:
        """Answers the next request of this method; its params."""
        request = self.expect(method)
        self.write({"jsonrpc": "2.0", "id": request["id"], "result": result})
        params: dict[str, Any] = request["params"]
        return params

    def _answer_itself(self, request: dict[str, Any]) -> None:
        beat = {"attachments": [self.attachment], "lagging": False}
        result = beat if request["method"] == "heartbeat" else {"subscriptions": []}
        with suppress(BrokenPipeError):  # it may have been killed meanwhile
            self.write({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def deliver(self, *contents: str, first: int = 1, **more: Any) -> None:
        """Pushes messages with further members."""
        messages = [{"seq": first + at, "content": each} | more for at, each in enumerate(contents)]
        params = {
            "attachment": self.attachment,
            "epoch": self.epoch,
            "subscription": 1,
            "channel": "general",
            "through": first + len(contents) - 1,
            "messages": messages,
        }
        self.write({"jsonrpc": "2.0", "method": "deliver", "params": params})

    def note(self, method: str, **more: Any) -> None:
        """Tells of something that concerns the attachment."""
        params = {"attachment": self.attachment} | more
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def revise(self, seq: int, content: str) -> None:
        """A memory that was pushed has changed."""
        message = {"seq": seq, "content": content, "memory_id": f"k{seq}"}
        facts = {"epoch": self.epoch, "subscription": 1, "seq": seq, "memory_id": f"k{seq}"}
        self.note("revise", message=message, **facts)

    def write(self, *documents: Any) -> None:
        assert self._connection is not None
        self._connection.sendall(b"".join(json.dumps(each).encode() + b"\n" for each in documents))

    def is_silent(self, seconds: float = 0.2) -> bool:
        """Whether the adapter reports no delivery for a while; heartbeats are answered."""
        deadline = time.monotonic() + seconds
        assert self._connection is not None
        while (left := deadline - time.monotonic()) > 0:
            if not self._lines and not select.select([self._connection], [], [], left)[0]:
                return True
            request = self._next()
            if request["method"] == "delivered":
                return False
            self._answer_itself(request)
        return True

    def _next(self) -> dict[str, Any]:
        assert self._connection is not None
        while not self._lines:
            try:
                data = self._connection.recv(1 << 20)
            except ConnectionResetError:  # it was killed before it had read all we said
                data = b""
            if not data:
                raise EOFError("the adapter has hung up")
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines += [json.loads(line) for line in lines]
        return self._lines.pop(0)


class Harness:
    """An adapter on pipes; nothing is read or written but by the test."""

    def __init__(self, daemon: Daemon, command: list[str] = COMMAND) -> None:
        self.process = subprocess.Popen(
            command,
            env=daemon.environment,
            cwd=daemon.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self._rest = b""

    def ask(self, method: str, identifier: Any = None, **params: Any) -> None:
        document: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if identifier is not None:
            document["id"] = identifier
        self.stdin.write(json.dumps(document).encode() + b"\n")

    def call(self, identifier: Any, tool: str, **arguments: Any) -> None:
        self.ask("tools/call", identifier, name=tool, arguments=arguments)

    def bound(self, identifier: Any, tool_use: str, tool: str, **arguments: Any) -> None:
        """A call that a hook has spoken for."""
        meta = {"claudecode/toolUseId": tool_use}
        self.ask("tools/call", identifier, name=tool, arguments=arguments, _meta=meta)

    def greet(self) -> None:
        client = {"name": "tests", "version": "1"}
        self.ask("initialize", 0, protocolVersion="2025-11-25", clientInfo=client)
        assert self.line()["id"] == 0

    def line(self) -> dict[str, Any]:
        """The next line."""
        while b"\n" not in self._rest:
            assert select.select([self.stdout], [], [], BOUND)[0], "the adapter says nothing"
            data = self.stdout.read(1 << 20)
            if not data:
                raise EOFError("the adapter has ended")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        document: dict[str, Any] = json.loads(line)
        return document

    def result(self, identifier: Any) -> dict[str, Any]:
        """The structured result of the next line, which is of this call."""
        document = self.line()
        assert document["id"] == identifier, document
        structured: dict[str, Any] = document["result"]["structuredContent"]
        return structured

    def ends(self, seconds: float) -> int:
        """The exit code of an adapter that ends in time."""
        return self.process.wait(seconds)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.stdout.close()
        self.stdin.close()


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A daemon whose every word is the test's."""
    directory = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))
    found = Daemon(directory)
    yield found
    found.close()
    shutil.rmtree(directory)


@pytest.fixture
def harness(daemon: Daemon) -> Iterator[Harness]:
    """An adapter that has registered, and knows its client."""
    found = Harness(daemon)
    try:
        daemon.greet()
        found.greet()
        yield found
    finally:
        found.close()
