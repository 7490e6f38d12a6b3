"""Many that are handed the same messages: `python -m bench.readers SPEC`, SPEC in JSON.

A process of its own, as lean as can be, since it shares the cores with what it measures: what comes
is counted by the names in it, not read, and a position is reported once for many messages. That
holds as positions follow each other: one channel, nothing of one's own, nothing lost. Of a bare
server each reads and reports the same bytes.

It prints `ready`, then what came once all have everything.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time
from typing import Final

import msgspec

from bench.bus import request
from bench.load import CHANNEL, HEARTBEAT_SECONDS, Connection
from bench.load import Spec as Load

MARK: Final = b'"message_id":'
"""Once in each message."""

REPORTED: Final = 64
"""Messages between two reports: a quarter of what the bus sends before it waits for one."""

CHUNK: Final = 1 << 18
BOUND_SECONDS: Final = 120.0
TAIL: Final = len(MARK) - 1


class Spec(msgspec.Struct, frozen=True):
    """So many readers of so many messages; of a bus, or of a bare server that asks nothing."""

    socket: str
    readers: int
    messages: int
    is_bus: bool


class Came(msgspec.Struct, frozen=True):
    """To all readers together."""

    messages: int
    bytes: int


class Reader:
    """One connection; `position` of a bus is where the subscription began."""

    def __init__(self, spec: Spec, number: int) -> None:
        self.received = 0
        self.bytes = 0
        self.beat = b""
        self._tail = bytes(TAIL)
        self._reported = 0
        self._position = 0
        self._template = request("delivered", "delivered", {"positions": [[0, -1]]}) + b"\n"
        if spec.is_bus:
            self._join(spec, number)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(spec.socket)

    def _join(self, spec: Spec, number: int) -> None:
        load = Load(spec.socket, f"reader{number}", 0, 0, 0, 0.0, 0.0)
        joined = Connection(load, "r", [CHANNEL])
        subscription = joined.registered["subscriptions"][0]
        self.socket = joined.socket
        self.beat = request("beat", "heartbeat", {}) + b"\n"
        self._position = subscription["position"]
        params = {
            "attachment": joined.attachment,
            "epoch": joined.registered["epoch"],
            "positions": [[subscription["subscription"], -1]],
        }
        self._template = request("delivered", "delivered", params) + b"\n"

    def take(self, buffer: bytearray, room: memoryview) -> None:
        """Reads what has come, `room` being the buffer behind its first `TAIL` bytes."""
        count = self.socket.recv_into(room)
        if not count:
            raise EOFError("the other end hung up")
        buffer[:TAIL] = self._tail
        self.bytes += count
        self.received += buffer.count(MARK, 0, TAIL + count)
        self._tail = bytes(buffer[count : count + TAIL])
        if self.received - self._reported >= REPORTED:
            self._report()

    def _report(self) -> None:
        self._reported = self.received
        position = b"%d" % (self._position + self.received)
        self.socket.sendall(self._template.replace(b"-1", position))


def run(readers: list[Reader], messages: int) -> Came:
    """Until each has that many. Raises TimeoutError, EOFError."""
    buffer = bytearray(TAIL + CHUNK)
    room = memoryview(buffer)[TAIL:]
    began = beat = time.monotonic()
    missing = set(readers)
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader.socket, selectors.EVENT_READ, reader)
        while missing:
            for key, _ in selector.select(1.0):
                reader = key.data
                reader.take(buffer, room)
                if reader.received >= messages:
                    missing.discard(reader)
            now = time.monotonic()
            if now - beat > HEARTBEAT_SECONDS:
                beat = now
                for reader in readers:
                    reader.socket.sendall(reader.beat)
            if now - began > BOUND_SECONDS:
                raise TimeoutError(f"{len(missing)} of {len(readers)} have not got everything")
    return Came(sum(each.received for each in readers), sum(each.bytes for each in readers))


def main() -> int:
    """Reads the spec from the first argument."""
    spec = msgspec.json.decode(sys.argv[1], type=Spec)
    readers = [Reader(spec, number) for number in range(spec.readers)]
    print("ready", flush=True)
    came = run(readers, spec.messages)
    print(msgspec.json.encode(came).decode(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
