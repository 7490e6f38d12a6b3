"""Small services for tests of the supervisor: they greet their peers and tell a test everything."""

from __future__ import annotations

import os
import sys
import time

import msgspec

from agentbus.config import load
from agentbus.errors import DatabaseDamaged
from agentbus.runtime.child import Child
from agentbus.supervisor.services import Service
from agentbus.supervisor.supervisor import run_daemon
from agentbus.wire.error_codes import Failure
from agentbus.wire.events import Closed, Opened, Received
from agentbus.wire.links import CONTROL, Failing, Frame, RedisUnfit, RedisUp, Stop, StopRequested

LINK = "left-right"
EVENTS = "AGENTBUS_TEST_EVENTS"


class Word(Frame, frozen=True, tag=1):
    """All that dummies say."""

    text: str


class Event(msgspec.Struct, omit_defaults=True):
    """What a dummy tells the test."""

    kind: str
    name: str
    pid: int
    link: str = ""
    text: str = ""


class Dummy:
    """Greets whoever is at the other end of a link; does what it is told by a word."""

    def __init__(self, context) -> None:
        self.name = context.name
        self.listener = context.listener
        self.child = Child(context, dict.fromkeys(context.links, Word))
        self._events = os.open(os.environ[EVENTS], os.O_WRONLY)

    def tell(self, kind: str, link: str = "", text: str = "") -> None:
        event = Event(kind, self.name, os.getpid(), link, text)
        os.write(self._events, msgspec.json.encode(event) + b"\n")

    async def start(self) -> None:
        self.tell("started")
        if self.listener is not None:
            self.child.loop.add_reader(self.listener, self._accept)
        self.child.ready()

    def handle(self, event) -> None:
        match event:
            case Opened(link):
                self.tell("opened", link)
                self.child.send(link, Word(f"hello from {os.getpid()}"))
            case Closed(link):
                self.tell("closed", link)
            case Received(link, Word(text)):
                self.tell("received", link, text)
            case Received(_, Stop(snapshot)):
                self.tell("stop", text=str(snapshot))
                self.child.exit(0)
            case Received(_, message):
                text = message.socket_path if isinstance(message, RedisUp) else ""
                self.tell(type(message).__name__, text=text)
                self.redis = getattr(message, "pid", 0)

    async def close(self) -> None:
        self.tell("ended")
        os.close(self._events)

    def _accept(self) -> None:
        """A connection is one command, the rest of the test's bidding; it gets the pid."""
        connection, _ = self.listener.accept()
        with connection:
            command = connection.recv(100).decode().strip()
            connection.sendall(b'{"id": 1, "result": {"state": "ready"}}\n')
        match command:
            case "stop":
                self.child.send(CONTROL, StopRequested())
            case "fail":
                self.child.send(CONTROL, Failing(Failure("database_damaged", "a dummy's fault")))
            case "unfit":
                fault = Failure("redis_incompatible", "a dummy's taste")
                self.child.send(CONTROL, RedisUnfit(self.redis, False, fault))


def run(context) -> int:
    dummy = Dummy(context)
    return dummy.child.run(dummy)


def run_deaf_to_stop(context) -> int:
    dummy = Dummy(context)
    dummy.handle = lambda event: None
    return dummy.child.run(dummy)


def run_unready(context) -> int:
    return 3


def run_damaged(context) -> int:
    dummy = Dummy(context)

    async def start() -> None:
        raise DatabaseDamaged("the dummy's database is damaged; look at it")

    dummy.start = start
    return dummy.child.run(dummy)


def run_deaf(context) -> int:
    time.sleep(600)
    return 0


def services(left: str = "run", right: str = "run") -> tuple[Service, ...]:
    return (
        Service("left", f"dummies:{left}", (LINK,), told_redis=True, saves_redis=True, grace=2),
        Service(
            "right",
            f"dummies:{right}",
            (LINK,),
            listens=True,
            told_processes=True,
            told_redis=True,
            grace=2,
        ),
    )


if __name__ == "__main__":
    _, config, report, left, right = sys.argv
    sys.exit(run_daemon(load(config), [int(report)], services(left, right)))
