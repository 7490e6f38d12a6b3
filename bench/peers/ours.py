"""agentbus itself, its rate limits raised: daemon, SQLite with full sync, Redis, text index."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from bench.accept import SETTINGS
from bench.bus import Place
from bench.peers.peer import Peer, Seat, Step
from bench.peers.rpc import Client

CHANNEL = "work"


class Ours(Peer):
    """A place like that of the other measurements; the first adapter starts the daemon."""

    name = "agentbus"
    promise = "WAL, full sync"

    def __init__(self, base: str, programs: str) -> None:
        super().__init__(base, programs)
        self.place = Place(self.directory, SETTINGS)

    @classmethod
    def missing(cls, programs: str) -> str:
        return ""

    def command(self) -> Sequence[str]:
        return [sys.executable, "-m", "agentbus", "mcp"]

    def environment(self) -> dict[str, str]:
        return super().environment() | {
            name: self.place.environment[name]
            for name in ("AGENTBUS_RUNTIME_DIR", "AGENTBUS_CONFIG")
        }

    def first(self, client: Client) -> None:
        client.call("whoami", {})

    def receiver(self, client: Client) -> Seat:
        client.call("create_channel", {"name": CHANNEL})
        client.call("subscribe", {"channel": CHANNEL})
        return OurSeat(client)

    def sender(self, client: Client, number: int) -> Seat:
        return OurSeat(client)

    def close(self) -> None:
        command = [sys.executable, "-m", "agentbus", "stop", "--config", self.place.config_path]
        subprocess.run(command, env=self.place.environment, check=True, stdout=subprocess.DEVNULL)
        super().close()


class OurSeat(Seat):
    def send(self, text: str) -> Step[None]:
        yield "send", {"channel": CHANNEL, "content": text}

    def read(self, count: int) -> Step[int]:
        came = 0
        while came < count:
            result = yield "recv", {"max_messages": count - came}
            messages = result["structuredContent"]["messages"]
            if not messages:
                break
            came += len(messages)
        return came

    def search(self, word: str) -> Step[int]:
        result = yield "search", {"query": word, "limit": 20}
        return len(result["structuredContent"]["results"])
