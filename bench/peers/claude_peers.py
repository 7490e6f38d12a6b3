"""claude-peers: adapters on Bun ask a broker over HTTP, which keeps messages in SQLite.

An adapter polls once a second and pushes what came, besides what it is asked for; both count as
read. The broker outlives its adapters, so it is ended here.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence

import psutil  # type: ignore[import-untyped]

from bench.peers.peer import Peer, Seat, Step
from bench.peers.rpc import Client, text_of


class ClaudePeers(Peer):
    name = "claude-peers"
    promise = "WAL, full sync"
    searches = False
    settle_seconds = 0.0  # or it would have pushed them, which nobody asks for and no clock sees
    _to = ""

    def __init__(self, base: str, programs: str) -> None:
        super().__init__(base, programs)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])

    @classmethod
    def program(cls) -> str:
        return "claude-peers/server.ts"

    def command(self) -> Sequence[str]:
        return [os.path.join(self._bun, "bun"), *super().command()]

    def environment(self) -> dict[str, str]:
        own = {
            "PATH": f"{self._bun}:{os.environ['PATH']}",
            "CLAUDE_PEERS_PORT": self._port,
            "CLAUDE_PEERS_DB": os.path.join(self.directory, "peers.db"),
        }
        return super().environment() | own

    @property
    def _bun(self) -> str:
        return os.path.join(self.programs, "bun", "node_modules", ".bin")

    def first(self, client: Client) -> None:
        client.call("list_peers", {"scope": "machine"})

    def receiver(self, client: Client) -> Seat:
        """Its id is what another one sees of it."""
        other = self.open()
        listed = text_of(other.call("list_peers", {"scope": "machine"}))
        self.drop(other)
        found = re.search(rf"ID: (\w+)\s+PID: {client.pid}\b", listed)
        assert found is not None, listed
        self._to = found[1]
        return _Seat(client, self._to)

    def sender(self, client: Client, number: int) -> Seat:
        return _Seat(client, self._to)

    def close(self) -> None:
        brokers = [
            child
            for client in self._clients
            for child in psutil.Process(client.pid).children()
            if "broker.ts" in " ".join(child.cmdline())
        ]
        super().close()
        for broker in brokers:
            broker.terminate()


class _Seat(Seat):
    def __init__(self, client: Client, to: str) -> None:
        super().__init__(client)
        self._to = to
        self._pushed = 0

    def send(self, text: str) -> Step[None]:
        yield "send_message", {"to_id": self._to, "message": text}

    def read(self, count: int) -> Step[int]:
        came = 0
        while came < count:
            found = re.match(r"(\d+) new message", text_of((yield "check_messages", {})))
            fresh = (int(found[1]) if found else 0) + self.client.pushed - self._pushed
            self._pushed = self.client.pushed
            if not fresh:
                break
            came += fresh
        return came
