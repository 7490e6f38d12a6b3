"""What commits amount to: memories that were changed several times are written once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentbus.mirror.write import Changes
from agentbus.wire.links import RowInserted, Tombstoned

IsNew = Callable[[RowInserted], bool]
"""Whether the row's memory has no entry yet; asked once for each row, in order."""

Newest = dict[str | None, RowInserted]
"""Rows by memory."""


def net(rows: list[RowInserted], tombstones: Sequence[Tombstoned], is_new: IsNew) -> Changes:
    """The rows of whole commits and what they tombstoned, as one change.

    A memory that was created and deleted leaves no trace, one that was created and edited is
    created with its newest content. Tombstones of revisions that have a successor mean nothing.
    """
    memories = [row for row in rows if row.memory_id is not None]
    if not memories and not tombstones:
        return Changes(rows)
    newest = {row.memory_id: row for row in memories}
    gone = {each.memory_id: each for each in tombstones if _is_last(each, newest)}
    created = _created(memories, newest, is_new)
    return Changes(
        [row for row in rows if row.memory_id is None],
        [row for name, row in created.items() if name not in gone],
        [row for name, row in newest.items() if name not in created and name not in gone],
        [each for name, each in gone.items() if name not in created],
    )


def _created(memories: list[RowInserted], newest: Newest, is_new: IsNew) -> Newest:
    """In the order of their creations."""
    created: Newest = {}
    for row in memories:
        if row.memory_id not in created and is_new(row):
            created[row.memory_id] = newest[row.memory_id]
    return created


def entries(rows: list[RowInserted]) -> Changes:
    """These rows as entries that are not there yet, each of a memory its only one."""
    return net(rows, (), lambda _: True)


def _is_last(tombstone: Tombstoned, newest: Newest) -> bool:
    row = newest.get(tombstone.memory_id)
    return row is None or (row.revision or 0) <= tombstone.revision
