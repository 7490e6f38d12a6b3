"""Recovery is one rule: what the index holds is carried on from, or it is done from nothing."""

from __future__ import annotations

from agentbus.search.fts5.schema import VERSION, Mark
from agentbus.store.read import Head


def beginning(head: Head) -> Mark:
    """What an empty index of this database says."""
    return Mark(head.instance, f"{head.schema}.{VERSION}", 0)


def missing(mark: Mark | None, head: Head) -> int:
    """Commits that the database had once, as its index remembers, and has no more: its WAL was
    deleted or cut off, or an older copy was put in its place."""
    if mark is None or mark.instance != head.instance:
        return 0
    return max(0, mark.commit_id - head.commit_id)


def doubt(mark: Mark | None, head: Head) -> str | None:
    """Why an index that says `mark` must be made anew; None: it can be caught up."""
    if mark is None:
        return "there is no index yet"
    target = beginning(head)
    if mark.instance != target.instance:
        return "the index is of another bus"
    if mark.schema != target.schema:
        return "the index was made by another version"
    if mark.commit_id > head.commit_id:
        return "the index is ahead of the database"
    if mark.commit_id < head.purge_floor:
        return "the index is older than what was purged from the database"
    return None
