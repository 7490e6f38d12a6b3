"""Looking after a projection that nobody changes: is it still what was written, is it saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentbus.mirror import write
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.mirror.write import Mark
from agentbus.projector import server
from agentbus.projector.conversation import Check, Purpose, Snapshot
from agentbus.projector.outbox import Outbox
from agentbus.projector.server import Snapshots

CHECK: Final = "check"
CHECK_SECONDS: Final = 2.0
FOREIGN: Final = "the contents of Redis were changed by somebody else"

Asker = Callable[[list[Command], Purpose], None]


class Checks:
    """From when Redis equals the database; the alarm `CHECK` rings for `look`."""

    def __init__(self, out: Outbox, ask: Asker) -> None:
        self._out = out
        self._ask = ask
        self._snapshots = Snapshots()

    def begin(self) -> None:
        """The first is due after a while."""
        self._out.alarm(CHECK, CHECK_SECONDS)

    def look(self, mark: Mark) -> None:
        """Is Redis at the mark, and is a snapshot due?"""
        self._out.alarm(CHECK, CHECK_SECONDS)
        self._ask([write.RECALL, server.PERSISTENCE], Check(mark))

    def looked(self, mark: Mark, replies: list[Reply]) -> str | None:
        """Why Redis is not to be trusted, or None."""
        if write.recalled(replies[0]) != mark:
            return FOREIGN
        facts = server.persistence(replies[1])
        if facts is None:
            return None
        if facts.failed and not self._snapshots.failed:
            self._out.note("warn", "snapshot_failed", hint="see the log of Redis; is a disk full?")
        if self._snapshots.is_due(facts, self._out.now):
            self._ask([(b"BGSAVE",)], Snapshot())
        return None

    def snapshot_begun(self, reply: Reply) -> None:
        """The server's answer to being asked for one."""
        if isinstance(reply, Refused):
            self._out.note("warn", "snapshot_refused", text=reply.brief)
