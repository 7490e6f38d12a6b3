"""Nothing obsolete is served between a change and the moment when every read shows it."""

from __future__ import annotations

from agentbus.gateway.revisions import Revisions
from agentbus.mirror.read import Entry
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.wire.links import MemoryChanged

CHANNEL = ChannelId(2)


def change(seq: int, commit: int, content: bytes | None = b"new") -> MemoryChanged:
    return MemoryChanged(
        CHANNEL, f"memory-{seq}", Seq(seq), 2, SessionId(1), CommitId(commit), content
    )


def entry(seq: int, content: bytes = b"old") -> Entry:
    return Entry(Seq(seq), SessionId(5), content)


def contents(revisions: Revisions, *seqs: int, channel: int = CHANNEL) -> list[bytes]:
    found = revisions.current(ChannelId(channel), [entry(seq) for seq in seqs])
    return [each.envelope for each in found]


def test_without_changes_entries_are_what_they_are() -> None:
    entries = [entry(1)]
    assert Revisions().current(CHANNEL, entries) is entries


def test_a_revision_takes_the_place_of_what_was_read_and_keeps_its_author() -> None:
    revisions = Revisions()
    revisions.changed(change(1, 4), CommitId(3), 0)
    assert contents(revisions, 1, 2) == [b"new", b"old"]
    (found,) = revisions.current(CHANNEL, [entry(1)])
    assert (found.seq, found.session_id) == (1, 5)
    assert contents(revisions, 1, channel=3) == [b"old"]


def test_a_deleted_memory_is_left_out() -> None:
    revisions = Revisions()
    revisions.changed(change(1, 4, None), CommitId(3), 0)
    assert contents(revisions, 1, 2) == [b"old"]


def test_the_last_change_counts() -> None:
    revisions = Revisions()
    revisions.changed(change(1, 4), CommitId(3), 0)
    revisions.changed(change(1, 5, b"newer"), CommitId(3), 0)
    revisions.visible(CommitId(4), 0)
    revisions.read(None)
    assert contents(revisions, 1) == [b"newer"]
    assert revisions.newest == 5


def test_what_is_visible_is_forgotten() -> None:
    revisions = Revisions()
    revisions.changed(change(1, 4), CommitId(3), 0)
    revisions.changed(change(2, 5), CommitId(3), 0)
    revisions.visible(CommitId(4), 0)
    revisions.read(None)
    assert contents(revisions, 1, 2) == [b"old", b"new"]


def test_what_is_visible_already_when_it_is_told_of_changes_nothing() -> None:
    revisions = Revisions()
    revisions.changed(change(1, 4), CommitId(4), 16)
    revisions.read(17)
    assert contents(revisions, 1) == [b"old"]


def test_unless_a_read_was_begun_that_may_be_older() -> None:
    for content, served in ((b"new", [b"new"]), (None, [])):
        revisions = Revisions()
        revisions.changed(change(1, 4, content), CommitId(4), 16)
        revisions.read(16)
        assert contents(revisions, 1) == served
        assert revisions.newest == 4
        revisions.changed(change(1, 3, b"before"), CommitId(4), 16)
        assert contents(revisions, 1) == served
        revisions.read(17)
        assert contents(revisions, 1) == [b"old"]


def test_reads_begun_before_it_was_visible_are_corrected_all_the_same() -> None:
    revisions = Revisions()
    revisions.changed(change(1, 4), CommitId(3), 0)
    revisions.visible(CommitId(4), 17)
    revisions.read(16)
    assert contents(revisions, 1) == [b"new"]
    revisions.read(18)
    assert contents(revisions, 1) == [b"old"]


def test_of_several_changes_in_one_commit_the_last_counts() -> None:
    revisions = Revisions()
    first = MemoryChanged(CHANNEL, "m", Seq(1), 2, SessionId(1), CommitId(4), b"second")
    then = MemoryChanged(CHANNEL, "m", Seq(1), 3, SessionId(1), CommitId(4), b"third")
    last = MemoryChanged(CHANNEL, "m", Seq(1), 3, SessionId(1), CommitId(4), None)
    revisions.changed(first, CommitId(3), 0)
    revisions.changed(then, CommitId(3), 0)
    assert contents(revisions, 1) == [b"third"]
    revisions.changed(first, CommitId(3), 0)
    revisions.changed(last, CommitId(3), 0)
    revisions.changed(last, CommitId(3), 0)
    assert contents(revisions, 1) == []
