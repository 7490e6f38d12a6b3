"""mcp-agent-mail 0.1: one HTTP server for all, SQLite, and a git archive of all messages."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress

from bench.peers.peer import Peer, Seat, Step
from bench.peers.rpc import Client, Http, Refused, json_of

START_SECONDS = 60


class AgentMail(Peer):
    name = "mcp-agent-mail"
    promise = "WAL, normal sync, and git"
    slow = True

    def __init__(self, base: str, programs: str) -> None:
        super().__init__(base, programs)
        self._server: subprocess.Popen[bytes] | None = None
        self._port = 0

    @classmethod
    def program(cls) -> str:
        return "mcp-agent-mail/bin/python"

    def command(self) -> Sequence[str]:
        serve = ["-m", "mcp_agent_mail.cli", "serve-http", "--host", "127.0.0.1"]
        return [*super().command(), *serve, "--port", str(self._port)]

    def environment(self) -> dict[str, str]:
        own = {
            "DATABASE_URL": f"sqlite+aiosqlite:///{self._database}",
            "STORAGE_ROOT": os.path.join(self.directory, "archive"),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LLM_ENABLED": "false",
        }
        return super().environment() | own

    @property
    def _database(self) -> str:
        return os.path.join(self.directory, "mail.sqlite3")

    def open(self, name: str = "bench") -> Client:
        """A further connection; the first one starts the server."""
        began = time.perf_counter()
        if self._server is None:
            self._start()
        assert self._server is not None
        client = self.track(Http(self._port, "/mcp/", self._server.pid))
        client.began = began
        client.greet(name)
        client.ready()
        return client

    def first(self, client: Client) -> None:
        client.call("health_check", {})

    def receiver(self, client: Client) -> Seat:
        client.call("ensure_project", {"human_key": self.directory})
        self._to = self._register(client)
        return _Seat(client, self.directory, self._to, self._to)

    def sender(self, client: Client, number: int) -> Seat:
        return _Seat(client, self.directory, self._register(client), self._to)

    def fill(self, seat: Seat, texts: Sequence[str]) -> None:
        """Rows like those of its own, with the trigger that indexes them."""
        with sqlite3.connect(self._database, timeout=30) as connection:
            names = [row[1] for row in connection.execute("PRAGMA table_info(messages)")]
            rest = ", ".join(name for name in names if name not in ("id", "body_md"))
            connection.executemany(
                f"INSERT INTO messages ({rest}, body_md) SELECT {rest}, ? FROM messages LIMIT 1",
                [(text,) for text in texts],
            )
        connection.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.terminate()
            try:
                self._server.wait(20)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
        super().close()

    def _start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._server = subprocess.Popen(
            self.command(),
            env=self.environment(),
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._server.poll() is None:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                return
            time.sleep(0.02)
        raise Refused("mcp-agent-mail did not start")

    def _register(self, client: Client) -> str:
        agent = {"project_key": self.directory, "program": "bench", "model": "bench"}
        made = client.call("register_agent", agent)["structuredContent"]
        name: str = made.get("result", made)["name"]
        return name


class _Seat(Seat):
    def __init__(self, client: Client, project: str, name: str, to: str) -> None:
        super().__init__(client)
        self._project = project
        self._name = name
        self._to = to

    def send(self, text: str) -> Step[None]:
        yield (
            "send_message",
            {
                "project_key": self._project,
                "sender_name": self._name,
                "to": [self._to],
                "subject": "work",
                "body_md": text,
            },
        )

    def read(self, count: int) -> Step[int]:
        wanted = {"project_key": self._project, "agent_name": self._name}
        result = yield "fetch_inbox", wanted | {"limit": count, "include_bodies": True}
        return len(result["structuredContent"]["result"])

    def search(self, word: str) -> Step[int]:
        wanted = {"project_key": self._project, "query": word, "limit": 20}
        result = yield (
            "call_extended_tool",
            {"tool_name": "search_messages", "arguments": wanted},
        )
        return len(json_of(result)["result"])
