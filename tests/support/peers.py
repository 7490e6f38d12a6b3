"""A client of the daemon's socket that sends whatever a test wants, and sees every line."""

from __future__ import annotations

import itertools
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from agentbus import __version__
from agentbus.wire.rpc import PROTOCOL

BOUND = 30.0


class RefusedError(Exception):
    """A JSON-RPC error; `code` is the application's, `number` the JSON-RPC one."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.number: int = error["code"]
        self.data: dict[str, Any] = error.get("data") or {}
        self.code: str = self.data.get("code", "")


class Peer:
    """A connection. Notifications wait in `notes` while answers are waited for."""

    def __init__(self, path: str, *, greet: bool = True) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(BOUND)
        self._ids = itertools.count(1)
        self._buffer = bytearray()
        self._answers: dict[Any, dict[str, Any]] = {}
        self.notes: deque[dict[str, Any]] = deque()
        try:
            self.socket.connect(path)
            if greet:
                self.call("hello", protocol=PROTOCOL, version=__version__)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up."""
        self.socket.close()

    def write(self, data: bytes) -> None:
        """Bytes as they are."""
        self.socket.sendall(data)

    def request(self, method: str, **params: Any) -> int:
        """Writes a request; its id."""
        number = next(self._ids)
        document = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.write(msgspec.json.encode(document) + b"\n")
        return number

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result. Raises RefusedError, and EOFError where the daemon hangs up."""
        return self.result(self.request(method, **params))

    def result(self, number: int | str | None) -> dict[str, Any]:
        """The result of a request that was written before."""
        while number not in self._answers:
            self._take()
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RefusedError(answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def refusal(self, number: int | str | None) -> RefusedError:
        """The error that answers a request that was written before; None: one without an id."""
        try:
            result = self.result(number)
        except RefusedError as error:
            return error
        raise AssertionError(f"was not refused: {result}")

    def note(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first notification that is wanted; those before it are thrown away."""
        while True:
            while self.notes:
                note = self.notes.popleft()
                if wanted(note):
                    return note
            self._take()

    def attach(self, session: str, **more: Any) -> Attached:
        """Registers a session of the application `tests`."""
        registered = self.call("register", application="tests", session=session, **more)
        return Attached(self, registered)

    def _take(self) -> None:
        line = msgspec.json.decode(self._line())
        if "method" in line:
            self.notes.append(line)
        else:
            self._answers[line["id"]] = line

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            data = self.socket.recv(1 << 18)
            if not data:
                raise EOFError("the daemon hung up")
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


class Attached:
    """An attachment on a peer's connection."""

    def __init__(self, peer: Peer, registered: dict[str, Any]) -> None:
        self.peer = peer
        self.registered = registered
        self.id: str = registered["attachment"]
        self.epoch: str = registered["epoch"]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A request in the attachment's name."""
        return self.peer.call(method, attachment=self.id, **params)

    def send(self, channel: str, message_id: str, content: str, **more: Any) -> dict[str, Any]:
        """One message; the result."""
        return self.call("send", channel=channel, message_id=message_id, content=content, **more)

    def receive(self, count: int, *, report: bool = True) -> list[dict[str, Any]]:
        """That many messages, or a few more; reported as they come, unless told otherwise."""
        messages: list[dict[str, Any]] = []
        while len(messages) < count:
            params = self.peer.note(self._is_ours)["params"]
            self.epoch = params["epoch"]
            messages += params["messages"]
            if report:
                self.report(params["subscription"], params["through"])
        return messages

    def report(self, subscription: int, position: int) -> None:
        """Says that everything up to a position was handed off; returns when that is durable."""
        self.call("delivered", epoch=self.epoch, positions=[(subscription, position)])

    def _is_ours(self, note: dict[str, Any]) -> bool:
        return note["method"] == "deliver" and note["params"]["attachment"] == self.id
