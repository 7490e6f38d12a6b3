"""agentbus-cli 0.1: adapters connect to each other's sockets and spool what comes to a file.

Its sockets are in `/tmp/cc-socks`, which cannot be changed; an adapter removes its own at its end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress

from bench.peers.peer import Peer, Seat, Step
from bench.peers.rpc import Client, text_of

SOCKETS = "/tmp/cc-socks"


class AgentbusCli(Peer):
    name = "agentbus-cli"
    promise = "a file of the receiver's process, no sync"
    searches = False
    _to = ""

    @classmethod
    def program(cls) -> str:
        return "agentbus-cli/bin/agentbus"

    def command(self) -> Sequence[str]:
        return [*super().command(), "mcp"]

    def first(self, client: Client) -> None:
        client.call("list_claude_sessions", {})

    def receiver(self, client: Client) -> Seat:
        named = text_of(client.call("set_session_name", {"name": "receiver"}))
        found = re.search(r"now (\S+)", named)
        assert found is not None
        self._to = found[1]
        return _Seat(client, self._to)

    def sender(self, client: Client, number: int) -> Seat:
        client.call("set_session_name", {"name": f"sender-{number}"})
        return _Seat(client, self._to)

    def close(self) -> None:
        super().close()
        with suppress(OSError):
            os.rmdir(SOCKETS)  # only when nobody else has one there


class _Seat(Seat):
    def __init__(self, client: Client, to: str) -> None:
        super().__init__(client)
        self._to = to

    def send(self, text: str) -> Step[None]:
        yield "send_to_claude", {"to": self._to, "message": text}

    def read(self, count: int) -> Step[int]:
        came = 0
        while came < count:
            result = yield "check_messages", {}
            fresh = text_of(result).count("[Message from ")
            if not fresh:
                break
            came += fresh
        return came
