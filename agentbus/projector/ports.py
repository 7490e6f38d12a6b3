"""What the projector needs of the bus database: short, bounded reads."""

from __future__ import annotations

from typing import Protocol

from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.store.read import Events, Head
from agentbus.wire.links import Boundary, RowInserted


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

    def events_after(self, commit_id: CommitId, limit_rows: int, limit_bytes: int) -> Events | None:
        """What the commits that follow did; None: `commit_id` is the newest.

        Ends before the first commit that passes a limit; the first one is never cut. Where no
        limit ended it, it reaches the newest commit, whose rows may all be gone.
        """
        ...

    def channel_infos(self) -> list[ChannelInfo]:
        """Every channel there is, in ascending order of its id."""
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

    def memory_rows(
        self,
        channel: ChannelId,
        position: Seq,
        up_to: CommitId,
        limit_rows: int,
        limit_bytes: int,
    ) -> list[RowInserted]:
        """The same of a memory channel, as it was at the commit `up_to`."""
        ...

    def memory_extent(self, channel: ChannelId, up_to: CommitId) -> tuple[int, Seq, Seq]:
        """How many memories a channel had as of a commit; the first and last position, or 0."""
        ...

    def boundaries(self) -> list[Boundary]:
        """Where each ordinary channel begins by now; past its last position where all went."""
        ...

    def close(self) -> None:
        """Gives the file up."""
        ...
