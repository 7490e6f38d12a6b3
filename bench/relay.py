"""The bare relay that the way from adapter to adapter is compared with: lines, passed on.

    python -m bench.relay server SOCKET    a uvloop server; a line from one goes to all others
    python -m bench.relay pipe SOCKET      between stdin and stdout, and the server

No storage, no checks, no names. The pipe is a plain selectors loop, as the bus' adapter is.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
import sys
from typing import cast

import uvloop

CHUNK = 1 << 18


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


async def _serve(path: str) -> None:
    members: list[_Line] = []
    server = await asyncio.get_running_loop().create_unix_server(lambda: _Line(members), path)
    print("ready", flush=True)
    await server.serve_forever()


def _pipe(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as daemon, selectors.DefaultSelector() as selector:
        daemon.connect(path)
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
        uvloop.run(_serve(where))
    else:
        _pipe(where)
