"""Reads stop at their bounds, and say so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.errors import Unavailable
from agentbus.mirror import write
from agentbus.mirror.read import WHOLE, Envelopes, Page, Reading
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.mirror.write import Mark
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.wire.links import RowInserted
from tests.support.model_redis import ModelRedis, Session

CHANNEL = ChannelId(1)
MARK = Mark(b"bus", b"1.1", b"4")


def stream(sizes: list[int], first: int = 1) -> Session:
    session = ModelRedis().connect()
    for number, size in enumerate(sizes, start=first):
        identity = b"%d-0" % number
        session.run((b"XADD", b"s:1", identity, b"e", b"x" * size, b"s", b"%d" % (number % 3)))
    return session


def read_on(reading: Reading, ask: Callable[[Command], Reply]) -> Page:
    while not reading.done:
        reading.take(ask(reading.command()))
    return reading.page()


def after(session: Session, position: int, count: int, max_bytes: int) -> Page:
    edge = Seq(position)
    reading = Reading(CHANNEL, edge, forward=True, count=count, max_bytes=max_bytes)
    return read_on(reading, session.run)


def before(session: Session, position: int | None, count: int, max_bytes: int) -> Page:
    edge = None if position is None else Seq(position)
    reading = Reading(CHANNEL, edge, forward=False, count=count, max_bytes=max_bytes)
    return read_on(reading, session.run)


def seqs(page: Page) -> list[int]:
    return [entry.seq for entry in page.entries]


def bounded(sizes: list[int], count: int, max_bytes: int) -> int:
    """How many of these a read returns: written anew, as plainly as can be."""
    taken = 0
    while taken < len(sizes) and taken < count:
        if taken and sum(sizes[: taken + 1]) > max_bytes:
            break
        taken += 1
    return taken


@given(
    st.lists(st.integers(0, 400), max_size=120),
    st.integers(0, 130),
    st.integers(1, 130),
    st.integers(1, 20_000),
)
def test_a_read_forward_takes_what_fits(
    sizes: list[int], position: int, count: int, max_bytes: int
) -> None:
    page = after(stream(sizes), position, count, max_bytes)
    rest = sizes[position:]
    taken = bounded(rest, count, max_bytes)
    assert seqs(page) == list(range(position + 1, position + 1 + taken))
    assert page.more == (taken < len(rest))
    assert [len(entry.envelope) for entry in page.entries] == rest[:taken]
    assert all(entry.session_id == entry.seq % 3 for entry in page.entries)


@given(
    st.lists(st.integers(0, 400), max_size=120),
    st.none() | st.integers(1, 130),
    st.integers(1, 130),
    st.integers(1, 20_000),
)
def test_a_read_backward_takes_the_newest_that_fit_in_stream_order(
    sizes: list[int], position: int | None, count: int, max_bytes: int
) -> None:
    page = before(stream(sizes), position, count, max_bytes)
    rest = sizes if position is None else sizes[: position - 1]
    taken = bounded(rest[::-1], count, max_bytes)
    assert seqs(page) == list(range(len(rest) - taken + 1, len(rest) + 1))
    assert page.more == (taken < len(rest))


def test_an_entry_larger_than_the_bytes_allowed_comes_alone() -> None:
    page = after(stream([5000, 10, 10]), 0, 10, 100)
    assert (seqs(page), page.more) == ([1], True)


def test_a_stream_that_does_not_exist_is_empty() -> None:
    page = after(ModelRedis().connect(), 0, 10, 100)
    assert (page.entries, page.more) == ([], False)


def steps(session: Session, count: int, max_bytes: int) -> tuple[Page, list[int]]:
    """What is read from the beginning, and how much is asked for in each step."""
    asked: list[int] = []

    def ask(command: Command) -> Reply:
        asked.append(int(command[-1]))
        return session.run(command)

    reading = Reading(CHANNEL, None, forward=True, count=count, max_bytes=max_bytes)
    return read_on(reading, ask), asked


def test_small_messages_are_read_in_few_steps() -> None:
    page, asked = steps(stream([1000] * 600), 256, 1 << 22)
    assert len(page.entries) == 256
    assert asked == [16, 128, 113]


def test_large_messages_are_not_read_far_beyond_the_bound() -> None:
    page, asked = steps(stream([60_000] * 100), 256, 1_200_000)
    assert len(page.entries) == 20
    assert sum(asked) <= 22


def test_a_refused_read_is_unavailable() -> None:
    redis = ModelRedis()
    redis.refuse(b"XRANGE")
    with pytest.raises(Unavailable, match="refused by the test"):
        after(redis.connect(), 0, 10, 100)


# ---- memories


def memories(sizes: list[int], gone: set[int]) -> tuple[ModelRedis, Session]:
    """Some of which were deleted after the stream was read."""
    redis = ModelRedis()
    session = redis.connect()
    for number, size in enumerate(sizes, start=1):
        name = b"memory-%d" % number
        session.run((b"XADD", b"s:1", b"%d-0" % number, b"m", name, b"s", b"%d" % (number % 3)))
        if number not in gone:
            session.run((b"HSET", b"m:1", name, b"y" * size))
    return redis, session


@given(
    st.lists(st.integers(0, 400), max_size=120),
    st.sets(st.integers(1, 120)),
    st.integers(0, 130),
    st.integers(1, 130),
    st.integers(1, 20_000),
)
def test_memories_are_read_with_their_contents_and_deleted_ones_passed_over(
    sizes: list[int], gone: set[int], position: int, count: int, max_bytes: int
) -> None:
    page = after(memories(sizes, gone)[1], position, count, max_bytes)
    rest = [seq for seq in range(position + 1, len(sizes) + 1) if seq not in gone]
    taken = bounded([sizes[seq - 1] for seq in rest], count, max_bytes)
    assert seqs(page) == rest[:taken]
    assert page.more == (taken < len(rest))
    for entry in page.entries:
        assert entry.memory_id == f"memory-{entry.seq}"
        assert entry.envelope == b"y" * sizes[entry.seq - 1]
        assert entry.session_id == entry.seq % 3


def test_memories_are_read_backward_too() -> None:
    page = before(memories([5] * 40, {40, 39, 20})[1], None, 20, 10_000)
    assert seqs(page) == list(range(18, 20)) + list(range(21, 39))
    assert page.more


def test_a_channel_of_which_all_memories_were_deleted_is_empty() -> None:
    page = after(memories([5] * 300, set(range(1, 301)))[1], 0, 10, 100)
    assert (page.entries, page.more) == ([], False)


def test_refused_contents_are_unavailable() -> None:
    redis, session = memories([5], set())
    redis.refuse(b"HMGET")
    with pytest.raises(Unavailable, match="refused by the test"):
        after(session, 0, 10, 100)


# ---- single messages


def test_a_message_is_found_by_its_position() -> None:
    session = stream([10], first=4)
    envelopes = Envelopes()
    assert envelopes.read(session.run(envelopes.ask((CHANNEL, Seq(4)), None))) == b"x" * 10
    assert envelopes.read(session.run(envelopes.ask((CHANNEL, Seq(5)), None))) is None


def test_a_memory_is_found_by_its_id() -> None:
    session = memories([10], set())[1]
    envelopes = Envelopes()
    assert envelopes.read(session.run(envelopes.ask((CHANNEL, Seq(1)), "memory-1"))) == b"y" * 10
    assert envelopes.read(session.run(envelopes.ask((CHANNEL, Seq(1)), "memory-2"))) is None


def test_a_refused_look_up_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        Envelopes().read(Refused("LOADING"))


@pytest.mark.parametrize(
    "mark",
    [[None, None], [None, b"7"], [b"bus", None], [b"bus", b"rebuilding-3"], Refused("LOADING")],
)
def test_what_was_read_of_an_emptied_server_is_not_believed(mark: Reply) -> None:
    reading = Reading(ChannelId(1), Seq(0), forward=True, count=3, max_bytes=100)
    assert reading.commands() == [reading.command(), WHOLE]
    with pytest.raises(Unavailable, match="does not hold"):
        reading.take_all([[], mark])
    reading.take_all([[], [b"bus", b"7"]])
    assert reading.done


def test_a_server_that_was_emptied_and_written_to_since_is_not_believed() -> None:
    session = ModelRedis().connect()
    session.run_all(write.clear(MARK))
    reading = Reading(ChannelId(1), Seq(0), forward=True, count=3, max_bytes=100)
    reading.take_all(session.run_all(reading.commands()))
    assert reading.done
    session.run((b"FLUSHALL",))
    row = RowInserted(ChannelId(2), Seq(9), SessionId(7), b"{}", None, None)
    session.run_all(write.batch(MARK, MARK.at(CommitId(5)), write.Changes([row])))
    reading = Reading(ChannelId(1), Seq(0), forward=True, count=3, max_bytes=100)
    with pytest.raises(Unavailable, match="does not hold"):
        reading.take_all(session.run_all(reading.commands()))
