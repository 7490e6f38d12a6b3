"""agent-bus-team 0.7: a file per message below one directory, no server.

It loses a line that comes together with the one before. So the handshake's second half, which has
no answer to wait for, is left out; it does not ask for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from bench.peers.peer import Peer, Seat, Step
from bench.peers.rpc import Client, Stdio, json_of


class AgentBusTeam(Peer):
    name = "agent-bus-team"
    promise = "files, no sync"
    searches = False
    holds = 50

    @classmethod
    def program(cls) -> str:
        return "agent-bus-team/bin/agent-bus"

    def command(self) -> Sequence[str]:
        return [*super().command(), "mcp"]

    def environment(self) -> dict[str, str]:
        return super().environment() | {"AGENT_BUS_HOME": os.path.join(self.directory, "bus")}

    def open(self, name: str = "bench") -> Client:
        client = self.track(Stdio(self.command(), self.environment(), self.directory))
        client.greet(name)
        return client

    def first(self, client: Client) -> None:
        client.call("list_agents", {})

    def receiver(self, client: Client) -> Seat:
        client.call("register", {"name": "receiver"})
        return _Seat(client)

    def sender(self, client: Client, number: int) -> Seat:
        client.call("register", {"name": f"sender-{number}"})
        return _Seat(client)


class _Seat(Seat):
    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._read: list[str] = []

    def send(self, text: str) -> Step[None]:
        yield "send_message", {"to": "receiver", "text": text}

    def read(self, count: int) -> Step[int]:
        messages = json_of((yield "get_inbox", {"unread_only": True}))
        self._read = [message["id"] for message in messages]
        return len(self._read)

    def clear(self) -> Step[None]:
        """One call a message."""
        while self._read:
            yield "ack_message", {"message_id": self._read.pop()}
