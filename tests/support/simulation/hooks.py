"""The inspection program of a bus that has one: late, broken at times, and of firm principles."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agentbus.gateway.events import Inspect, Inspected
from agentbus.gateway.inspect import SIDE_BY_SIDE
from tests.support.simulation.children import Broken, Child
from tests.support.simulation.scheduler import Timer

FORBIDDEN: Final = "forbidden"
"""What contains this word is always denied."""

BROKEN: Final = 0.08
"""How often the program says nothing that counts."""

USELESS: Final = (b"", b"yes", b'{"decision": "perhaps"}', b"\xff")


class Hook:
    """The programs under way in one gateway; they end with it."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._chance = child.scheduler.chance("hook")
        self._running: dict[int, tuple[str, Timer]] = {}

    def run(self, asked: Inspect) -> None:
        """Begins one. Raises Broken where a session has one already, or there are too many."""
        document = msgspec.json.decode(asked.document)
        session = document["sender"]["session"]
        busy = [session for session, _ in self._running.values()]
        if session in busy or len(busy) == SIDE_BY_SIDE:
            raise Broken(f"an inspection for {session} beside those for {busy}")
        takes = self._chance.random() ** 6 * 2 * asked.seconds
        if takes > asked.seconds:
            answer = Inspected(asked.ref, b"", "it did not end in time")
        else:
            answer = self._judge(asked.ref, document)
        timer = self._child.scheduler.after(
            min(takes, asked.seconds), self._child.post, self._ended, answer
        )
        self._running[asked.ref] = (session, timer)

    def _judge(self, ref: int, document: dict[str, Any]) -> Inspected:
        if self._chance.random() < BROKEN:
            if self._chance.random() < 0.5:
                return Inspected(ref, b"", "it ended with status 1")
            return Inspected(ref, self._chance.choice(USELESS))
        if FORBIDDEN in document["payload"].get("content", ""):
            return Inspected(ref, b'{"decision": "deny", "reason": "bad word"}')
        return Inspected(ref, b'{"decision": "allow"}')

    def _ended(self, answer: Inspected) -> None:
        if self._running.pop(answer.ref, None) is not None:
            self._child.happened(answer)

    def stop(self, ref: int) -> None:
        """Nobody waits for it any more."""
        running = self._running.pop(ref, None)
        if running is not None:
            running[1].cancelled = True
