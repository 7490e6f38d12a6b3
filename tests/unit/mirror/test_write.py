"""A batch is all there or is known not to be."""

from __future__ import annotations

from agentbus.mirror import keys, write
from agentbus.mirror.resp import Command
from agentbus.mirror.write import Changes, Mark
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.wire.links import Boundary, RowInserted, Tombstoned
from tests.support.model_redis import ModelRedis

MARK = Mark(b"bus-1", b"1.1", b"4")


def row(channel: int, seq: int) -> RowInserted:
    return RowInserted(ChannelId(channel), Seq(seq), SessionId(7), b'{"n":%d}' % seq)


def batch(before: Mark, after: Mark, *rows: RowInserted) -> list[Command]:
    return write.batch(before, after, Changes(list(rows)))


def prepared() -> ModelRedis:
    redis = ModelRedis()
    redis.connect().run_all(write.clear(MARK))
    return redis


def test_a_batch_adds_the_rows_and_moves_the_mark() -> None:
    redis = prepared()
    session = redis.connect()
    replies = session.run_all(batch(MARK, MARK.at(CommitId(6)), row(1, 1), row(2, 1), row(1, 2)))
    assert write.refusal(replies, MARK) is None
    assert redis.envelopes(b"s:1") == [(1, b'{"n":1}'), (2, b'{"n":2}')]
    assert redis.streams[b"s:2"][1] == [b"e", b'{"n":1}', b"s", b"7"]
    assert write.recalled(session.run(write.RECALL)) == MARK.at(CommitId(6))


def test_a_batch_on_other_contents_is_found_out() -> None:
    redis = prepared()
    replies = redis.connect().run_all(batch(MARK.at(CommitId(3)), MARK, row(1, 1)))
    reason = write.refusal(replies, MARK.at(CommitId(3)))
    assert reason == "the contents of Redis were changed by somebody else"


def test_a_refused_command_in_the_middle_is_found_out() -> None:
    redis = prepared()
    replies = redis.connect().run_all(batch(MARK, MARK, row(1, 2), row(1, 1)))
    assert "equal or smaller" in str(write.refusal(replies, MARK))


def test_a_transaction_that_was_not_carried_out_is_found_out() -> None:
    redis = prepared()
    redis.out_of_memory = True
    replies = redis.connect().run_all(batch(MARK, MARK, row(1, 2)))
    assert "OOM" in str(write.refusal(replies, MARK))
    assert write.refusal([b"OK", b"QUEUED", None], MARK) == (
        "Redis did not carry out a transaction"
    )


def test_a_step_of_a_rebuild_is_no_transaction_and_known_to_be_wrong_all_the_same() -> None:
    redis = prepared()
    session = redis.connect()
    before, after = MARK.rebuilding(3), MARK.rebuilding(4)
    session.run_all(write.clear(before))
    commands = batch(before, after, row(1, 1), row(1, 2))
    assert {command[0] for command in commands} == {b"HMGET", b"XADD", b"HSET"}
    assert write.refusal(session.run_all(commands), before, transaction=False) is None
    assert write.recalled(session.run(write.RECALL)) == after
    replies = session.run_all(batch(before, after, row(1, 3)))
    changed = "the contents of Redis were changed by somebody else"
    assert write.refusal(replies, before, transaction=False) == changed
    replies = session.run_all(batch(after, after, row(1, 5), row(1, 4)))
    assert "equal or smaller" in str(write.refusal(replies, after, transaction=False))


def test_clearing_leaves_the_mark_alone() -> None:
    redis = prepared()
    session = redis.connect()
    session.run_all(batch(MARK, MARK, row(1, 1)))
    replies = session.run_all(write.clear(MARK.rebuilding(0)))
    assert write.refusal(replies, None) is None
    assert redis.streams == {}
    assert redis.hashes == {
        keys.META: {b"instance": b"bus-1", b"schema": b"1.1", b"commit_id": b"rebuilding-0"}
    }


def test_a_mark_in_the_middle_of_a_rebuild_has_no_commit() -> None:
    assert MARK.commit_id == 4
    assert MARK.rebuilding(12).commit_id is None


def test_a_mark_that_is_incomplete_is_none() -> None:
    assert write.recalled([b"bus-1", None, b"4"]) is None
    assert write.recalled([None, None, None]) is None
    redis = ModelRedis()
    redis.refuse(b"HMGET", "WRONGTYPE Operation against a key")
    assert write.recalled(redis.run(write.RECALL)) is None


def test_another_bus_in_a_mark_is_written_whole() -> None:
    redis = prepared()
    other = Mark(b"bus-2", b"1.1", b"0")
    session = redis.connect()
    session.run_all(batch(MARK, other))
    assert write.recalled(session.run(write.RECALL)) == other


def memory(seq: int, revision: int = 1) -> RowInserted:
    content = b'{"r":%d}' % revision
    return RowInserted(ChannelId(5), Seq(seq), SessionId(7), content, f"m{seq}", revision)


def carry_out(redis: ModelRedis, changes: Changes, *documents: Command) -> None:
    commands = write.batch(MARK, MARK, changes, documents)
    assert write.refusal(redis.connect().run_all(commands), MARK) is None


def test_a_memory_has_an_entry_that_names_it_and_a_content() -> None:
    redis = prepared()
    carry_out(redis, Changes([row(1, 1)], [memory(1)]))
    assert redis.streams[b"s:5"] == {1: [b"m", b"m1", b"s", b"7"]}
    assert redis.hashes[b"m:5"] == {b"m1": b'{"r":1}'}
    assert b"m:1" not in redis.hashes


def test_an_edit_replaces_the_content_and_leaves_the_entry() -> None:
    redis = prepared()
    carry_out(redis, Changes([], [memory(1), memory(2)]))
    carry_out(redis, Changes([], edited=[memory(1, 2)]))
    assert list(redis.streams[b"s:5"]) == [1, 2]
    assert redis.hashes[b"m:5"] == {b"m1": b'{"r":2}', b"m2": b'{"r":1}'}


def test_a_deletion_removes_both() -> None:
    redis = prepared()
    carry_out(redis, Changes([], [memory(1), memory(2)]))
    carry_out(redis, Changes([], deleted=[Tombstoned(ChannelId(5), "m2", Seq(2), 1)]))
    assert list(redis.streams[b"s:5"]) == [1]
    assert list(redis.hashes[b"m:5"]) == [b"m1"]


def test_below_a_boundary_nothing_is_left() -> None:
    redis = prepared()
    carry_out(redis, Changes([row(1, 1), row(1, 2), row(1, 3), row(2, 1)]))
    carry_out(redis, Changes([], boundaries=[Boundary(ChannelId(1), Seq(3))]))
    assert list(redis.streams[b"s:1"]) == [3]
    assert list(redis.streams[b"s:2"]) == [1]


def test_documents_go_with_their_messages() -> None:
    redis = prepared()
    carry_out(redis, Changes([row(1, 1)]), (b"HSET", b"d:1:1", b"t", b"words"))
    assert redis.hashes[b"d:1:1"] == {b"t": b"words"}


def test_what_can_be_counted_is_told_from_what_cannot() -> None:
    gone = Tombstoned(ChannelId(5), "m2", Seq(2), 1)
    assert Changes([row(1, 1)], [memory(1)]).only_adds
    assert not Changes([], edited=[memory(1, 2)]).only_adds
    assert not Changes([], deleted=[gone]).only_adds
    assert not Changes([], boundaries=[Boundary(ChannelId(1), Seq(3))]).only_adds
