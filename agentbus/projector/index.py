"""The search index within the server, where it has a query engine.

Documents are written in the transaction of their message, so that the index is always at the mark.
Only right after a start is it behind: the server then reads the documents of its snapshot anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.mirror.write import Changes
from agentbus.model.ids import ChannelId, Seq
from agentbus.projector.conversation import Prepare, Purpose
from agentbus.projector.outbox import Outbox
from agentbus.search.document import document
from agentbus.search.query_engine import write
from agentbus.wire.links import RowInserted

INDEX: Final = "index"
INDEX_SECONDS: Final = 0.2
"""Between two looks whether all documents are in."""

Asker = Callable[[list[Command], Purpose], None]

_PREPARE: Final = [*write.OPTIONS, write.CREATE, write.INSPECT]


class Index:
    """`on_change` is told when the index begins or ceases to answer searches."""

    def __init__(self, out: Outbox, ask: Asker, on_change: Callable[[str], None]) -> None:
        self._out = out
        self._ask = ask
        self._on_change = on_change
        self._refused = ""
        self.is_there = False
        """Whether the server has a query engine."""

    @property
    def name(self) -> str:
        """What documents are made of; empty where there are none."""
        return write.VERSION if self.is_there else ""

    def use(self, search: str) -> None:
        """Another connection to a server, maybe another one."""
        self._out.silence(INDEX)
        self.is_there = search == "query_engine"
        self._on_change("" if self.is_there else search)

    def prepare(self) -> None:
        """Makes the index if there is none, and asks until it is complete."""
        if self.is_there:
            self._ask(_PREPARE, Prepare())

    def prepared(self, replies: list[Reply]) -> None:
        """The replies to that."""
        created, state = replies[-2:]
        if write.is_complete(state):
            self._on_change("query_engine")
            return
        if isinstance(state, Refused) and isinstance(created, Refused):
            self._note_refusal(created.brief)
        self._out.alarm(INDEX, INDEX_SECONDS)

    def cleared(self) -> None:
        """The server was emptied, and the index is gone with all else."""
        if self.is_there:
            self._on_change("")
            self.prepare()

    def _note_refusal(self, text: str) -> None:
        if text != self._refused:
            self._refused = text
            self._out.note("error", "index_refused", text=text)

    # ---- documents

    def documents(self, changes: Changes) -> list[Command]:
        """What puts them in step with these changes."""
        commands: list[Command] = []
        for row in (*changes.entries, *changes.edited):
            commands += self._put(row)
        return commands + [write.remove((each.channel_id, each.seq)) for each in changes.deleted]

    def _put(self, row: RowInserted) -> list[Command]:
        try:
            return [write.put(document(row), row.memory_id)]
        except msgspec.DecodeError as error:
            self._out.note("error", "unreadable_row", id=row.id, error=type(error).__name__)
            return []

    def removals(self, channel: ChannelId, positions: range) -> list[Command]:
        """What removes the documents of these positions."""
        return [write.remove((channel, Seq(position))) for position in positions]
