"""agent-bus-mcp 0.5: every adapter opens one SQLite file itself, a Rust extension beneath.

Its indexing of meanings is off: it would fetch a model from elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from bench.peers.peer import Peer, Seat, Step
from bench.peers.rpc import Client, Refused

PRELOADED = "agent-bus-mcp/isoc23.so"


class AgentBusMcp(Peer):
    name = "agent-bus-mcp"
    promise = "WAL, full sync"

    @classmethod
    def program(cls) -> str:
        return "agent-bus-mcp/bin/agent-bus"

    def environment(self) -> dict[str, str]:
        shim = os.path.join(self.programs, PRELOADED)
        more = {"LD_PRELOAD": shim} if os.path.exists(shim) else {}
        database = os.path.join(self.directory, "bus.sqlite")
        own = {"AGENT_BUS_DB": database, "AGENT_BUS_EMBEDDINGS_AUTOINDEX": "0"}
        return super().environment() | more | own

    def first(self, client: Client) -> None:
        client.call("topic_list", {})

    def receiver(self, client: Client) -> Seat:
        made = client.call("topic_create", {"name": "work", "mode": "new"})
        self.topic = made["structuredContent"]["topic_id"]
        return self._join(client, "receiver")

    def sender(self, client: Client, number: int) -> Seat:
        return self._join(client, f"sender-{number}")

    def fill(self, seat: Seat, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), 20):
            outbox = [{"content_markdown": text} for text in texts[start : start + 20]]
            seat.client.call("sync", _sync(self.topic, 1) | {"outbox": outbox})

    def _join(self, client: Client, name: str) -> Seat:
        client.call("topic_join", {"agent_name": name, "topic_id": self.topic})
        return _Seat(client, self.topic)


class _Seat(Seat):
    def __init__(self, client: Client, topic: str) -> None:
        super().__init__(client)
        self._topic = topic

    def send(self, text: str) -> Step[None]:
        outbox = [{"content_markdown": text}]
        result = yield "sync", _sync(self._topic, 1) | {"outbox": outbox}
        if len(result["structuredContent"]["sent"]) != 1:
            raise Refused("not sent")

    def read(self, count: int) -> Step[int]:
        came = 0
        while came < count:
            result = yield "sync", _sync(self._topic, 20)
            received = result["structuredContent"]["received_count"]
            if not received:
                break
            came += received
        return came

    def search(self, word: str) -> Step[int]:
        arguments = {"query": word, "mode": "fts", "limit": 20}
        result = yield "messages_search", arguments
        return len(result["structuredContent"]["results"])


def _sync(topic: str, most: int) -> dict[str, Any]:
    """It would wait for messages where nothing is said."""
    return {"topic_id": topic, "max_items": most, "wait_seconds": 0}
