"""Finding single rows, by their number (whoever knows it from an index) or id: short reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentbus import sqlite
from agentbus.model.channel import ChannelInfo
from agentbus.store.beside import Beside
from agentbus.store.read import CHANNELS
from agentbus.wire.links import RowInserted

CURRENT: Final = """
    SELECT id, envelope FROM messages WHERE id IN ({marks}) AND tombstone = 0
"""
"""The envelopes of those of some rows that are there and live."""

MEMORY: Final = """
    SELECT envelope FROM messages WHERE memory_id = ? AND tombstone = 0
    ORDER BY revision DESC LIMIT 1
"""
"""A memory's current revision."""

MESSAGE: Final = "SELECT memory_id, envelope FROM messages WHERE message_id = ?"
"""A row by its own id, be it live or not."""

MEMORY_ROWS: Final = """
    SELECT channel_id, seq, session_id, envelope, memory_id, revision, id FROM messages
    WHERE id BETWEEN ? AND ? AND memory_id IS NOT NULL AND tombstone = 0 ORDER BY id
"""
"""The current revisions among a range of rows."""

COUNT_MEMORIES: Final = """
    SELECT count(*) FROM messages
    WHERE id BETWEEN ? AND ? AND memory_id IS NOT NULL AND tombstone = 0
"""
"""How many of a range of rows are current revisions."""

ANY_MESSAGE: Final = """
    SELECT EXISTS (SELECT 1 FROM messages WHERE id BETWEEN ? AND ? AND memory_id IS NULL)
"""
"""Whether there is an ordinary message among a range of rows."""

NEXT: Final = "SELECT id, sent_at FROM messages WHERE id >= ? ORDER BY id LIMIT 1"
"""The row at or after a number."""

LAST: Final = "SELECT ifnull(max(id), 0) FROM messages"
"""The highest number."""

WIDTH: Final = 128
"""Rows of one look-up, at most."""

NARROW: Final = 32
"""Those of most: each mark costs something, whether it is needed or not."""

_CURRENT: Final = {width: CURRENT.format(marks=", ".join("?" * width)) for width in (NARROW, WIDTH)}


class Lookup(Beside):
    """Looks rows up."""

    def _rows(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        connection = self._open()
        with sqlite.translated(self._path):
            return connection.execute(statement, parameters).fetchall()

    def channels(self) -> dict[str, ChannelInfo]:
        """Every channel there is, by name."""
        return {row[1]: ChannelInfo(*row) for row in self._rows(CHANNELS, ())}

    def current(self, ids: Sequence[int]) -> dict[int, bytes]:
        """The envelopes of those rows, at most `WIDTH`, that are there and not tombstoned."""
        width = NARROW if len(ids) <= NARROW else WIDTH
        padding = (None,) * (width - len(ids))
        return dict(self._rows(_CURRENT[width], (*ids, *padding)))

    def memory(self, memory_id: str) -> bytes | None:
        """The envelope of a memory's current revision; None where there is none (any more)."""
        found = self._rows(MEMORY, (memory_id,))
        return found[0][0] if found else None

    def message(self, identity: str) -> bytes | None:
        """The envelope of a message by its id. The id of a memory, or of any of its revisions,
        finds what the memory is now."""
        found = self._rows(MESSAGE, (identity,))
        if not found:
            return self.memory(identity)
        memory_id, envelope = found[0]
        if memory_id is not None:
            return self.memory(memory_id)
        message: bytes = envelope
        return message

    def first_since(self, sent_at: int) -> int:
        """The lowest number whose row, and all after it, were sent at this time or later.

        Numbers and times go up together, so it is found by halving.
        """
        low, high = 0, self._rows(LAST, ())[0][0] + 1
        while low < high:
            middle = (low + high) // 2
            found = self._rows(NEXT, (middle,))
            if not found or found[0][1] >= sent_at:
                high = middle
            else:
                low = found[0][0] + 1
        return low

    # ---- what of an index is still of use

    def has_messages(self, first: int, last: int) -> bool:
        """Whether any row of an ordinary channel from one number to another is left."""
        return bool(self._rows(ANY_MESSAGE, (first, last))[0][0])

    def count_memories(self, first: int, last: int) -> int:
        """How many rows from one number to another are current revisions."""
        count: int = self._rows(COUNT_MEMORIES, (first, last))[0][0]
        return count

    def memory_rows(self, first: int, last: int) -> list[RowInserted]:
        """Those rows; as many as the caller has counted and can bear."""
        return [RowInserted(*row) for row in self._rows(MEMORY_ROWS, (first, last))]
