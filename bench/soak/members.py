"""Sessions that send, change memories, receive and search through real adapters, and keep books."""

from __future__ import annotations

import random
import string
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.support.daemon import Daemon
from tests.support.stdio import ToolError
from tests.support.traffic import Member

ORDINARY: Final = ("general", "soak/one", "soak/two")
MEMORIES: Final = "soak/notes"
LARGEST: Final = 20_000
"""Characters of a message."""

WAKES: Final = 0.004
"""How likely the first session receives where all others do, so that it falls behind and finds gaps
where messages were evicted."""

DRAIN_SECONDS: Final = 120.0
"""Within which a session has everything that was accepted, once nobody sends any more."""


class Books:
    """What all sessions know together. `accepted` has where each message went, and who sent it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.accepted: dict[str, tuple[str, int, str]] = {}
        self.content: dict[str, str] = {}
        self.revisions: dict[str, dict[int, str]] = {}
        """Of each memory, what its revisions said, as far as their authors heard of it."""
        self.deleted: set[str] = set()


class Shown(msgspec.Struct, frozen=True):
    """One thing that a session was shown, by which of its adapters: a message or a gap."""

    adapter: int
    channel: str
    message: dict[str, Any] | None = None
    gap: dict[str, Any] | None = None


class Session(Member):
    """One session, in a thread of its own while `work` runs."""

    def __init__(self, bus: Daemon, books: Books, number: int, seed: int) -> None:
        super().__init__(bus, f"soak-{number}")
        self.name = f"soak-{number}"
        self._books = books
        self._random = random.Random(f"{seed}/{number}")
        self._count = 0
        self._dozes = number == 0
        self.shown: list[Shown] = []
        self.searches = 0
        self.faults: list[str] = []
        self.failure: BaseException | None = None

    def join_all(self) -> None:
        """Subscribes to everything, from here on."""
        for channel in ORDINARY:
            self.insist("create_channel", name=channel)
            self.insist("subscribe", channel=channel)
        self.insist("create_channel", name=MEMORIES, kind="memory")
        self.insist("subscribe", channel=MEMORIES)

    def work(self, until: Callable[[], bool]) -> None:
        """Random operations until it is over; what fails is kept in `failure`."""
        operations = (self._send, self._remember, self._change, self._delete, self._find)
        weights = (80, 6, 6, 2, 6)
        try:
            while not until():
                for operation in self._random.choices(operations, weights, k=8):
                    operation()
                if not self._dozes or self._random.random() < WAKES:
                    self._receive(0.0)
        except BaseException as error:  # noqa: BLE001 - told by whoever started the thread
            self.failure = error

    def drain(self) -> None:
        """Receives until nothing more comes; whether that is everything, the audit tells."""
        try:
            deadline = time.monotonic() + DRAIN_SECONDS
            quiet = 0
            while quiet < 2 and time.monotonic() < deadline:
                quiet = 0 if self._receive(1.0) else quiet + 1
        except BaseException as error:  # noqa: BLE001 - as above
            self.failure = error

    # ---- operations

    def _send(self) -> None:
        message_id, content = self._next()
        channel = self._random.choice(ORDINARY)
        sent = self.insist("send", channel=channel, content=content, message_id=message_id)
        self._accepted(message_id, content, channel, sent["seq"])

    def _remember(self) -> None:
        message_id, content = self._next()
        sent = self.insist("send", channel=MEMORIES, content=content, message_id=message_id)
        self._accepted(message_id, content, MEMORIES, sent["seq"])
        with self._books.lock:
            self._books.revisions.setdefault(sent["memory_id"], {})[sent["revision"]] = content

    def _change(self) -> None:
        memory = self._some_memory()
        if memory is None:
            return
        operation, content = self._next()
        arguments = {"memory_id": memory, "content": content, "operation_id": operation}
        edited = self._try("memory_edit", **arguments)
        if edited is not None:
            with self._books.lock:
                self._books.revisions[memory][edited["revision"]] = content

    def _delete(self) -> None:
        memory = self._some_memory()
        if memory is None:
            return
        operation, _ = self._next()
        if self._try("memory_delete", memory_id=memory, operation_id=operation) is not None:
            with self._books.lock:
                self._books.deleted.add(memory)

    def _try(self, tool: str, **arguments: Any) -> dict[str, Any] | None:
        """None where somebody else has deleted the memory."""
        try:
            return self.insist(tool, **arguments)
        except ToolError as error:
            if error.code != "not_found":
                raise
            return None

    def _some_memory(self) -> str | None:
        with self._books.lock:
            known = [key for key in self._books.revisions if key not in self._books.deleted]
        return self._random.choice(known[-200:]) if known else None

    def _find(self) -> None:
        """What was accepted is found by a word that nothing else has."""
        message_id, content = self._next()
        sent = self.insist("send", channel=ORDINARY[0], content=content, message_id=message_id)
        self._accepted(message_id, content, ORDINARY[0], sent["seq"])
        word = content.split()[0]
        found = self.insist("search", query=word)["results"]
        self.searches += 1
        if [each["message_id"] for each in found] != [message_id]:
            self.faults.append(f"{self.name}: a search for {word} found {len(found)} messages")

    def _receive(self, seconds: float) -> bool:
        result = self.insist("recv", wait_seconds=seconds, max_messages=200, max_kib=1024)
        adapter = self.adapters
        if result["expired"]:
            self.faults.append(f"{self.name}: a cursor expired")
        # A gap stands before the messages of its channel that follow it.
        self.shown += [Shown(adapter, gap["channel"], gap=gap) for gap in result["gaps"]]
        self.shown += [Shown(adapter, each["channel"], each) for each in result["messages"]]
        return bool(result["messages"] or result["gaps"] or result["more"])

    # ---- books

    def _next(self) -> tuple[str, str]:
        self._count += 1
        message_id = f"{self.name}-{self._count}"
        length = int(self._random.paretovariate(1.2) * 800)
        words = "".join(self._random.choices(string.ascii_lowercase + "    é京都\n", k=length))
        return message_id, f"{self.name.replace('-', '')}x{self._count} {words}"[:LARGEST]

    def _accepted(self, message_id: str, content: str, channel: str, seq: int) -> None:
        with self._books.lock:
            self._books.accepted[message_id] = (channel, seq, self.name)
            self._books.content[message_id] = content
