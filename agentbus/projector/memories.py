"""What commits amount to: memories that were changed several times are written once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentbus.mirror.write import Changes
from agentbus.wire.links import RowInserted, Tombstoned

IsNew = Callable[[RowInserted], bool]
"""Whether the row's memory has no entry yet; asked once for each row, in order."""


def net(rows: list[RowInserted], tombstones: Sequence[Tombstoned], is_new: IsNew) -> Changes:
    """The rows of whole commits and what they tombstoned, as one change.

    A memory that was created and deleted leaves no trace, one that was created and edited is
    created with its newest content. Tombstones of revisions that have a successor mean nothing.
    """
    newest = {row.memory_id: row for row in rows if row.memory_id is not None}
    if not newest and not tombstones:
        return Changes(rows)
    gone = {each.memory_id: each for each in tombstones if _is_last(each, newest)}
    added: list[RowInserted] = []
    created: set[str] = set()
    for row in rows:
        if row.memory_id is None:
            added.append(row)
        elif row.memory_id not in created and is_new(row):
            created.add(row.memory_id)
            if row.memory_id not in gone:
                added.append(newest[row.memory_id])
    edited = [row for name, row in newest.items() if name not in created and name not in gone]
    deleted = [each for name, each in gone.items() if name not in created]
    return Changes(added, edited, deleted)


def _is_last(tombstone: Tombstoned, newest: dict[str, RowInserted]) -> bool:
    row = newest.get(tombstone.memory_id)
    return row is None or (row.revision or 0) <= tombstone.revision
