"""The bare relays that the bus is compared with: lines, passed on.

    python -m bench.relay server SOCKET    a uvloop server; a line from one goes to all others
    python -m bench.relay pipe SOCKET      between stdin and stdout, and the server
    python -m bench.relay copy SOCKET      a uvloop server; what a sender sends goes to all readers

No storage, no checks, no names. The pipe is a plain selectors loop, as the bus' adapter is. A
sender says so in its first line; it is answered a byte for each of its lines, and not read while a
reader has `AHEAD` bytes to read. What readers say is read and forgotten.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
import sys
from collections.abc import Callable
from typing import cast

import uvloop

CHUNK = 1 << 18
AHEAD = 512 * 1024
"""About what the bus sends to an adapter before it waits for a report."""

SENDER = b"sender\n"


class _Line(asyncio.Protocol):
    """One connection of the server."""

    def __init__(self, members: list[_Line]) -> None:
        self._members = members
        self._transport: asyncio.Transport | None = None
        self._rest = b""

    def connection_made(  # type: ignore[explicit-override]
        self, transport: asyncio.BaseTransport
    ) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._members.append(self)

    def data_received(self, data: bytes) -> None:  # type: ignore[explicit-override]
        lines, end, self._rest = (self._rest + data).rpartition(b"\n")
        for member in self._members:
            if member is not self and member._transport is not None:
                member._transport.write(lines + end)

    def connection_lost(self, _: Exception | None) -> None:  # type: ignore[explicit-override]
        self._members.remove(self)


class _Copies:
    """What all connections of such a server share."""

    def __init__(self) -> None:
        self.readers: list[asyncio.Transport] = []
        self.sender: asyncio.Transport | None = None
        self.full = 0

    def hold(self, change: int) -> None:
        """So many readers more are full, or fewer."""
        before, self.full = self.full, self.full + change
        if self.sender is None or bool(before) == bool(self.full):
            return
        if self.full:
            self.sender.pause_reading()
        else:
            self.sender.resume_reading()


class _Copy(asyncio.Protocol):
    """One connection of that server: a reader until it says that it is the sender."""

    def __init__(self, copies: _Copies) -> None:
        self._copies = copies
        self._transport: asyncio.Transport | None = None

    def connection_made(  # type: ignore[explicit-override]
        self, transport: asyncio.BaseTransport
    ) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(AHEAD)
        self._copies.readers.append(self._transport)

    def data_received(self, data: bytes) -> None:  # type: ignore[explicit-override]
        copies = self._copies
        if data.startswith(SENDER):
            copies.sender = self._transport
            copies.readers.remove(copies.sender)
            data = data[len(SENDER) :]
        if copies.sender is self._transport and data:
            for reader in copies.readers:
                reader.write(data)
            copies.sender.write(b"\n" * data.count(b"\n"))

    def pause_writing(self) -> None:  # type: ignore[explicit-override]
        self._copies.hold(1)

    def resume_writing(self) -> None:  # type: ignore[explicit-override]
        self._copies.hold(-1)


async def _serve(path: str, protocol: Callable[[], asyncio.Protocol]) -> None:
    server = await asyncio.get_running_loop().create_unix_server(protocol, path)
    print("ready", flush=True)
    await server.serve_forever()


def _pipe(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(path)
        between(daemon)


def between(daemon: socket.socket) -> None:
    """Says `ready`, then passes on what comes from stdin or the socket, until one of them ends."""
    with selectors.DefaultSelector() as selector:
        os.write(1, b"ready\n")
        selector.register(0, selectors.EVENT_READ, daemon.sendall)
        selector.register(daemon, selectors.EVENT_READ, lambda data: os.write(1, data))
        while True:
            for key, _ in selector.select():
                data = os.read(key.fd, CHUNK)
                if not data:
                    return
                key.data(data)


if __name__ == "__main__":
    kind, where = sys.argv[1:]
    if kind == "server":
        members: list[_Line] = []
        uvloop.run(_serve(where, lambda: _Line(members)))
    elif kind == "copy":
        copies = _Copies()
        uvloop.run(_serve(where, lambda: _Copy(copies)))
    else:
        _pipe(where)
