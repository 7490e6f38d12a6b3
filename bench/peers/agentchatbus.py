"""agentchatbus 0.2: each adapter opens one SQLite file itself; a send needs a token first."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Any

from bench.peers.peer import Peer, Seat, Step
from bench.peers.rpc import Client, Refused, json_of


class AgentChatBus(Peer):
    name = "agentchatbus"
    promise = "WAL, full sync"
    slow = True

    @classmethod
    def program(cls) -> str:
        return "agentchatbus/bin/agentchatbus-stdio"

    def environment(self) -> dict[str, str]:
        own = {
            "AGENTCHATBUS_DB": self._database,
            "AGENTCHATBUS_RATE_LIMIT": "0",
        }
        return super().environment() | own

    @property
    def _database(self) -> str:
        return os.path.join(self.directory, "bus.db")

    def first(self, client: Client) -> None:
        client.call("thread_list", {})

    def receiver(self, client: Client) -> Seat:
        return self._join(client)

    def sender(self, client: Client, number: int) -> Seat:
        return self._join(client)

    def fill(self, seat: Seat, texts: Sequence[str]) -> None:
        """Rows like those of its own, with the trigger that indexes them."""
        with sqlite3.connect(self._database) as connection:
            connection.executemany(
                "INSERT INTO messages (id, thread_id, author, role, content, seq, created_at)"
                " SELECT hex(randomblob(16)), thread_id, author, role, ?,"
                " (SELECT max(seq) + 1 FROM messages), created_at FROM messages LIMIT 1",
                [(text,) for text in texts],
            )
        connection.close()

    def _join(self, client: Client) -> Seat:
        joined = json_of(
            client.call("bus_connect", {"thread_name": "work", "ide": "b", "model": "b"})
        )
        return _Seat(client, joined)


class _Seat(Seat):
    def __init__(self, client: Client, joined: dict[str, Any]) -> None:
        super().__init__(client)
        self._agent = joined["agent"]
        self._thread = joined["thread"]["thread_id"]
        self._seen = joined["current_seq"]
        self._read = joined["current_seq"]
        self._token = joined["reply_token"]

    def send(self, text: str) -> Step[None]:
        """Where the last token is spent, a wait gives the next one, and does not wait for it."""
        token, self._token = self._token, None
        if token is None:
            token = yield from self._next_token()
        posted = yield (
            "msg_post",
            {
                "thread_id": self._thread,
                "author": self._agent["agent_id"],
                "content": text,
                "expected_last_seq": self._seen,
                "reply_token": token,
            },
        )
        answer = json_of(posted)
        if "msg_id" not in answer:
            raise Refused(str(answer.get("error")))
        self._seen = answer["seq"]

    def _next_token(self) -> Step[str]:
        wait = {
            "thread_id": self._thread,
            "after_seq": self._seen - 1,
            "timeout_ms": 1,
            "return_format": "json",
            "agent_id": self._agent["agent_id"],
            "token": self._agent["token"],
        }
        sync = json_of((yield "msg_wait", wait))
        self._seen = sync["current_seq"]
        return sync["reply_token"]

    def read(self, count: int) -> Step[int]:
        wanted = {"thread_id": self._thread, "after_seq": self._read, "return_format": "json"}
        messages = json_of((yield "msg_list", wanted | {"limit": count}))
        messages = messages["messages"] if isinstance(messages, dict) else messages
        self._read = max((message["seq"] for message in messages), default=self._read)
        return len(messages)

    def search(self, word: str) -> Step[int]:
        found = json_of((yield "msg_search", {"query": word, "limit": 20}))
        return len(found["results"])
