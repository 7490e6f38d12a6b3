"""What the projector needs of the bus database: short, bounded reads."""

from __future__ import annotations

from typing import Protocol

import msgspec

from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.wire.links import RowInserted


class Head(msgspec.Struct, frozen=True):
    """Which bus the database is of and how far it goes.

    `purge_floor` is the highest tombstone commit ever purged: what is older cannot be caught up.
    """

    instance: str
    schema: int
    commit_id: CommitId
    purge_floor: CommitId


class Chunk(msgspec.Struct, frozen=True):
    """Rows of whole commits, in order; `commit_id` is the last of these commits.

    A commit may have no row any more: where no limit ended the chunk, it goes to the newest commit.
    """

    rows: list[RowInserted]
    commit_id: CommitId


class Source(Protocol):
    """Every call is one read of its own. Raises StorageFailed or DatabaseDamaged."""

    def reopen(self) -> None:
        """The file may be another one now."""
        ...

    def head(self) -> Head:
        """The newest state."""
        ...

    def rows_after(self, commit_id: CommitId, limit_rows: int, limit_bytes: int) -> Chunk | None:
        """The live rows of the commits that follow; None: `commit_id` is the newest.

        Ends before the first commit that passes a limit; the first one is never cut.
        """
        ...

    def channels(self) -> list[ChannelId]:
        """Every channel there is, in ascending order."""
        ...

    def channel_rows(
        self,
        channel: ChannelId,
        position: Seq,
        up_to: CommitId,
        limit_rows: int,
        limit_bytes: int,
    ) -> list[RowInserted]:
        """The live rows above a position of commits not above `up_to`, by position.

        At least one where there is any; empty: no more of them.
        """
        ...

    def close(self) -> None:
        """Gives the file up."""
        ...
