"""What streams hold is counted along with every write."""

from __future__ import annotations

from agentbus.mirror.write import Changes
from agentbus.model.ids import ChannelId, Seq, SessionId
from agentbus.projector.tops import Tops
from agentbus.wire.links import Boundary, ChannelTop, RowInserted, Tombstoned

DATED = b'{"sent_at":"now"}'
MEMORIES = ChannelId(50)


def row(channel: int, seq: int, memory: str | None = None) -> RowInserted:
    return RowInserted(ChannelId(channel), Seq(seq), SessionId(1), DATED, memory)


def holding(count: int, oldest: int, top: int) -> Tops:
    tops = Tops()
    tops.found(ChannelTop(ChannelId(2), count, Seq(oldest), Seq(top), "then"))
    return tops


def cut(oldest: int) -> list[Boundary]:
    return [Boundary(ChannelId(2), Seq(oldest))]


def test_what_is_added_is_counted_to_what_was_found() -> None:
    tops = Tops()
    tops.start([ChannelId(2), ChannelId(1)])
    tops.found(ChannelTop(ChannelId(2), 3, Seq(5), Seq(7), "then"))
    tops.changed(Changes([row(2, 8), row(9, 4)]))
    assert tops.all() == [
        ChannelTop(ChannelId(1), 0, Seq(0), Seq(0), ""),
        ChannelTop(ChannelId(2), 4, Seq(5), Seq(8), "now"),
        ChannelTop(ChannelId(9), 1, Seq(4), Seq(4), "now"),
    ]
    assert tops.all() == tops.all()
    assert tops.of([ChannelId(9)]) == [ChannelTop(ChannelId(9), 1, Seq(4), Seq(4), "now")]


def test_what_is_below_a_boundary_is_not_counted_any_more() -> None:
    tops = holding(3, 5, 7)
    assert tops.below(cut(7)) == [(2, 5, 7)]
    tops.changed(Changes([], boundaries=cut(7)))
    assert tops.all() == [ChannelTop(ChannelId(2), 1, Seq(7), Seq(7), "then")]
    assert tops.below(cut(7)) == []


def test_a_boundary_that_is_behind_changes_nothing() -> None:
    tops = holding(3, 5, 7)
    tops.bounded(cut(3))
    assert tops.below(cut(3)) == []
    assert tops.all() == [ChannelTop(ChannelId(2), 3, Seq(5), Seq(7), "then")]


def test_a_stream_of_which_all_went_begins_after_its_last_position() -> None:
    tops = holding(3, 5, 7)
    tops.bounded(cut(8))
    assert tops.all() == [ChannelTop(ChannelId(2), 0, Seq(8), Seq(7), "then")]
    tops.changed(Changes([row(2, 8)]))
    assert tops.all() == [ChannelTop(ChannelId(2), 1, Seq(8), Seq(8), "now")]


def test_an_empty_stream_learns_where_its_channel_stands() -> None:
    tops = Tops()
    tops.start([ChannelId(1), ChannelId(2)])
    tops.bounded([*cut(12), Boundary(ChannelId(1), Seq(1))])
    assert tops.below(cut(12)) == []
    assert tops.all() == [
        ChannelTop(ChannelId(1), 0, Seq(0), Seq(0), ""),
        ChannelTop(ChannelId(2), 0, Seq(12), Seq(11), ""),
    ]


def test_deleted_memories_are_counted_off_and_edits_are_activity() -> None:
    tops = Tops()
    tops.changed(Changes([], [row(50, 1, "a"), row(50, 2, "b")]))
    later = RowInserted(MEMORIES, Seq(1), SessionId(1), b'{"sent_at":"later"}', "a", 2)
    tops.changed(Changes([], [], [later], [Tombstoned(MEMORIES, "b", Seq(2), 1)]))
    assert tops.all() == [ChannelTop(MEMORIES, 1, Seq(1), Seq(2), "later")]
    assert tops.heads() == {50: 2}
