"""What the projector needs of the bus database: short, bounded reads."""

from __future__ import annotations

from typing import Protocol

from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.store.read import Chunk, Head
from agentbus.wire.links import RowInserted


class Source(Protocol):
    """Every call is one read of its own; `store.read.Reader` is the real one.

    Raises StorageFailed, DatabaseDamaged or VersionMismatch; every call may be tried again.
    """

    def reopen(self) -> None:
        """The file may be another one now."""
        ...

    def head(self) -> Head:
        """The newest state."""
        ...

    def rows_after(self, commit_id: CommitId, limit_rows: int, limit_bytes: int) -> Chunk | None:
        """The live rows of the commits that follow; None: `commit_id` is the newest.

        Ends before the first commit that passes a limit; the first one is never cut. Where no
        limit ended it, it reaches the newest commit, whose rows may all be gone.
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
