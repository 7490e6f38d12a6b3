from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.errors import InternalError
from agentbus.wire.framing import ENOUGH, HEADER, MAX_BODY, FrameDecoder, FrameWriter, encode


class Number(msgspec.Struct, frozen=True, array_like=True, tag=1):
    value: int


class Blob(msgspec.Struct, frozen=True, array_like=True, tag=2):
    data: bytes


MESSAGES = st.lists(
    st.builds(Number, st.integers(0, 2**63)) | st.builds(Blob, st.binary(max_size=300)), max_size=12
)


def decoder() -> FrameDecoder[Number | Blob]:
    return FrameDecoder(Number | Blob)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[start:end] for start, end in itertools.pairwise(edges)]


def header(length: int) -> bytes:
    return length.to_bytes(HEADER, "big")


@given(MESSAGES, st.lists(st.integers(0, 10_000), max_size=40))
def test_however_the_stream_is_cut_the_same_messages_come_out(messages, places):
    frames = decoder()
    stream = b"".join(bytes(encode(message)) for message in messages)
    received = [message for piece in cut(stream, places) for message in frames.feed(piece)]
    assert received == messages
    assert frames.pending == 0


@given(MESSAGES)
def test_byte_by_byte_each_message_comes_with_its_last_byte(messages):
    frames = decoder()
    for message in messages:
        frame = bytes(encode(message))
        early = [frames.feed(frame[index : index + 1]) for index in range(len(frame) - 1)]
        assert not any(early)
        assert frames.feed(frame[-1:]) == [message]


@given(st.binary(max_size=200), st.lists(st.integers(0, 10_000), max_size=10))
def test_garbage_is_an_internal_error_or_waits_for_more(garbage, places):
    frames = decoder()
    try:
        for piece in cut(garbage, places):
            frames.feed(piece)
    except InternalError:
        return
    assert frames.pending <= len(garbage)


def test_a_partial_frame_is_counted_as_pending():
    frames = decoder()
    frame = bytes(encode(Number(7)))
    assert frames.feed(frame[:3]) == []
    assert frames.pending == 3
    assert frames.feed(frame[3:]) == [Number(7)]
    assert frames.pending == 0


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_taken(kind):
    assert decoder().feed(kind(encode(Number(1)))) == [Number(1)]


def test_the_layout_is_a_big_endian_length_and_an_array_of_arrays():
    frame = encode(Number(5))
    assert frame[:HEADER] == header(len(frame) - HEADER)
    assert msgspec.msgpack.decode(frame[HEADER:]) == [[1, 5]]


def gathered(messages):
    writer = FrameWriter()
    for message in messages:
        writer.add(message)
    writer.close()
    return writer.buffer


def lengths(stream):
    found = []
    while stream:
        found.append(int.from_bytes(stream[:HEADER], "big"))
        stream = stream[HEADER + found[-1] :]
    return found


@given(MESSAGES, st.lists(st.integers(0, 10_000), max_size=40))
def test_messages_that_share_a_frame_come_out_in_order(messages, places):
    stream = bytes(gathered(messages))
    frames = decoder()
    received = [message for piece in cut(stream, places) for message in frames.feed(piece)]
    assert received == messages
    assert len(lengths(stream)) == bool(messages)


def test_a_frame_that_has_enough_is_followed_by_another():
    messages = [Blob(b"x" * 1000)] * 200
    stream = bytes(gathered(messages))
    assert decoder().feed(stream) == messages
    assert 3 <= len(lengths(stream)) <= 4
    assert max(lengths(stream)) < ENOUGH + 2000


def test_a_message_that_is_refused_leaves_the_others_whole():
    writer = FrameWriter()
    for _ in range(2):
        with pytest.raises(InternalError, match="Blob message"):
            writer.add(Blob(b"x" * MAX_BODY))
        writer.add(Number(1))
        with pytest.raises(TypeError):
            writer.add(Number(object()))
        writer.add(Number(2))
        writer.close()
    assert decoder().feed(writer.buffer) == [Number(1), Number(2)] * 2


def test_what_is_thrown_away_takes_the_open_frame_with_it():
    writer = FrameWriter()
    writer.add(Number(1))
    writer.clear()
    writer.close()
    assert not writer.buffer
    writer.add(Number(2))
    writer.close()
    assert decoder().feed(writer.buffer) == [Number(2)]


def test_the_largest_message_may_come_last_in_a_frame():
    overhead = len(encode(Blob(b"x" * 70_000))) - len(encode(Blob(b""))) - 70_000
    small = Blob(b"x" * (ENOUGH - 20))
    largest = Blob(b"x" * (MAX_BODY - len(encode(Blob(b""))) - overhead + HEADER + 5))
    assert decoder().feed(gathered([small, largest])) == [small, largest]


def test_a_body_at_the_limit_passes_and_one_more_byte_does_not():
    overhead = len(encode(Blob(b"x" * 70_000))) - HEADER - 5 - 70_000
    largest = Blob(b"x" * (MAX_BODY - overhead))
    assert decoder().feed(encode(largest)) == [largest]
    with pytest.raises(InternalError, match="Blob message"):
        encode(Blob(b"x" * (MAX_BODY - overhead + 1)))


def test_an_announced_length_over_the_limit_is_refused_before_its_body_comes():
    with pytest.raises(InternalError, match="announces"):
        decoder().feed(header(MAX_BODY + ENOUGH + 100))


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", msgspec.msgpack.encode([[9, 1]]), msgspec.msgpack.encode([{"value": 1}])],
    ids=["empty", "no msgpack", "unknown tag", "no array"],
)
def test_a_body_that_is_no_message_of_the_union_is_refused(body):
    with pytest.raises(InternalError, match="cannot be read"):
        decoder().feed(header(len(body)) + body)


def test_a_member_added_later_is_ignored_by_an_older_reader():
    body = msgspec.msgpack.encode([[1, 5, "new"]])
    assert decoder().feed(header(len(body)) + body) == [Number(5)]
