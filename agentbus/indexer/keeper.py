"""Keeping the index up with the database.

    state    the index                                        leads to
    -------  -----------------------------------------------  ------------------------------------
    CLOSED   not open, or the database is not there yet       BEHIND
    BEHIND   is of this bus, and not up to the commit that    READY · CLOSED on damage
             the database had when it was opened
    READY    has been up to the database; is kept up          CLOSED on damage, and when the
                                                              database turns out to be another bus'

Indexing goes in steps of whole commits, with a turn of the loop between them, and begins when no
commit has come for a moment, so that many small ones become one, and a burst is accepted first and
indexed afterwards. It begins at once where a search waits, and after `LAG_SECONDS` anyway, which
bounds what a search can have to wait for.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal

from agentbus.config import MIB
from agentbus.errors import AgentbusError
from agentbus.indexer import recover
from agentbus.indexer.ports import Index, Remains, Source
from agentbus.indexer.tidy import Tidy
from agentbus.model.ids import CommitId
from agentbus.search.document import documents
from agentbus.search.fts5.schema import IndexDamaged
from agentbus.sqlite import Busy
from agentbus.store.read import Head

STEP_ROWS: Final = 2_048
STEP_BYTES: Final = 4 * MIB
"""What is indexed before other events have their turn, about 50 ms; a single commit may be more."""

GATHER_SECONDS: Final = 0.2
"""How long no commit must have come: documents added by the thousand cost half as much."""

LAG_SECONDS: Final = 0.75
"""How long commits that keep coming are gathered: what that can be is indexed in half a second."""

BUSY_SECONDS: Final = 0.02
FAILED_SECONDS: Final = 0.5
"""Until the next try: after a lock, and after anything else (the writer may be making the
database, the disk may be full)."""

TIDY_SECONDS: Final = 10.0
TIDYING_SECONDS: Final = 0.1
"""Between two looks at what is gone, where the first found nothing, or something."""

OPENING: Final = "the search index is being opened"
CATCHING_UP: Final = "the search index is being brought up to date"

_Level = Literal["info", "warn", "error"]
_Note = tuple[_Level, str, dict[str, Any]]


class State(Enum):
    """See the module's table."""

    CLOSED = "closed"
    BEHIND = "behind"
    READY = "ready"


class Keeper:
    """`applied` is the last commit that is in; `reason` is empty when ready and well."""

    def __init__(self, source: Source, remains: Remains, index: Index) -> None:
        self._source = source
        self._index = index
        self._tidy = Tidy(index, remains)
        self._notes: list[_Note] = []
        self._renewed = False
        self._instance = ""
        self._behind_since = 0.0
        self._step_at = 0.0
        self._tidy_at = 0.0
        self._try_at = 0.0
        self.state = State.CLOSED
        self.reason = OPENING
        self.applied = CommitId(0)
        self.target = CommitId(0)
        """The last commit that the database is known to hold."""
        self.missing = 0
        """Commits that the database was found to have lost, since this process began."""

    @property
    def documents(self) -> int:
        """How many are in the index."""
        return self._index.documents

    @property
    def text_bytes(self) -> int:
        """How much text they had."""
        return self._index.text_bytes

    def notes(self) -> list[_Note]:
        """What there is to log since the last time."""
        notes, self._notes = self._notes, []
        return notes

    def takes_renewed(self) -> bool:
        """Whether the file was replaced since the last time."""
        renewed, self._renewed = self._renewed, False
        return renewed

    def told(self, commit_id: CommitId, now: float) -> None:
        """The database holds this commit."""
        if commit_id > self.target:
            if self.target <= self.applied:
                self._behind_since = now
            self._step_at = min(now + GATHER_SECONDS, self._behind_since + LAG_SECONDS)
            self.target = commit_id

    def damaged(self, text: str) -> None:
        """The file is put aside; the next turn makes another."""
        self._notes.append(("error", "index_damaged", {"text": text}))
        self._index.put_aside()
        self._renewed = True
        self._become(State.CLOSED, OPENING)

    # ---- turns

    def due(self, *, urgent: bool) -> float:
        """When `work` has something to do again."""
        if self.state is State.CLOSED:
            return self._try_at
        step_at = self._step_at if not urgent else 0.0
        wanted = step_at if self.target > self.applied else self._tidy_at
        return max(wanted, self._try_at)

    def work(self, now: float, *, urgent: bool) -> None:
        """One step at most, where one is due; where it fails, it is tried again later."""
        if now < self.due(urgent=urgent):
            return
        try:
            self._work(now)
        except IndexDamaged as error:
            self.damaged(str(error))
            self._try_at = now + FAILED_SECONDS
        except Busy:
            self._try_at = now + BUSY_SECONDS
        except AgentbusError as error:
            self._failed(error, now)

    def _work(self, now: float) -> None:
        if self.state is State.CLOSED:
            self._open()
        elif self.target > self.applied:
            self._step()
        else:
            self._look_after(now)
        if self.state is State.READY:
            self.reason = ""

    def _failed(self, error: AgentbusError, now: float) -> None:
        self._try_at = now + FAILED_SECONDS
        if error.message != self.reason:
            self.reason = error.message
            self._notes.append(("warn", "index_failed", {"code": error.code}))
        self._source.reopen()

    # ---- steps

    def _open(self) -> None:
        head = self._source.head()
        mark = self._index.open()
        doubt = recover.doubt(mark, head)
        missing = recover.missing(mark, head)
        if missing:
            self.missing += missing
            fields = {"missing": missing, "commit_id": head.commit_id}
            self._notes.append(("warn", "commits_lost", fields))
        if mark is None or doubt is not None:
            self._notes.append(("info", "index_begins", {"reason": doubt or ""}))
            mark = recover.beginning(head)
            self._index.begin(mark)
        self._instance = head.instance
        self.applied = CommitId(mark.commit_id)
        self.target = max(self.target, head.commit_id)
        self._become(State.BEHIND, CATCHING_UP)
        self._reached()

    def _step(self) -> None:
        chunk = self._source.rows_after(self.applied, STEP_ROWS, STEP_BYTES)
        if chunk is None:
            self.target = self.applied  # whoever told of a later one was told by another bus
        else:
            found, unreadable = documents(chunk.rows)
            self._notes += [("error", "unreadable_row", {"id": number}) for number in unreadable]
            self._index.add(found, chunk.commit_id)
            self.applied = chunk.commit_id
        self._reached()

    def _reached(self) -> None:
        if self.state is State.BEHIND and self.applied >= self.target:
            self._become(State.READY, "")

    def _look_after(self, now: float) -> None:
        """Whatever nobody has told of: other commits, another bus, rows that are gone."""
        head = self._source.head()
        if self._is_other(head):
            self._source.reopen()
            self._become(State.CLOSED, OPENING)
            return
        self.target = max(self.target, head.commit_id)
        busy = self._tidy.step()
        self._tidy_at = now + (TIDYING_SECONDS if busy else TIDY_SECONDS)

    def _is_other(self, head: Head) -> bool:
        return head.instance != self._instance or head.commit_id < self.applied

    def _become(self, state: State, reason: str) -> None:
        """The only place where the state changes."""
        if state is not self.state:
            fields = {"state": state.value, "commit_id": self.applied}
            self._notes.append(("info", "index", fields))
        self.state, self.reason = state, reason
