"""Lines come out as they went in, however the bytes were cut."""

from __future__ import annotations

import itertools
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from agentbus.wire.lines import HEAD, LineDecoder, Overlong

plain = st.binary(min_size=1, max_size=40).filter(
    lambda line: b"\n" not in line and line.strip(b" \t\r") == line
)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[a:b] for a, b in itertools.pairwise(edges)]


@given(st.lists(plain), st.lists(st.integers(0, 2000)))
def test_lines_survive_any_cutting_of_the_stream(lines: list[bytes], places: list[int]) -> None:
    decoder = LineDecoder(1000)
    stream = b"".join(line + b"\n" for line in lines)
    assert [out for part in cut(stream, places) for out in decoder.feed(part)] == lines
    assert decoder.pending == 0


@given(st.integers(1, 300), st.lists(st.integers(0, 400)))
def test_a_line_of_the_ceiling_passes_and_a_longer_one_is_reported_once(
    length: int, places: list[int]
) -> None:
    decoder = LineDecoder(100)
    stream = b"x" * length + b"\n" + b"after\n"
    got = [out for part in cut(stream, places) for out in decoder.feed(part)]
    fits = length + 1 <= 100
    assert got == [b"x" * length if fits else Overlong(100, got[0].head, got[0].tail), b"after"]
    if not fits:
        assert set(got[0].head) == {ord("x")}


def test_an_overlong_line_keeps_its_beginning_and_no_more() -> None:
    decoder = LineDecoder(10_000)
    assert decoder.feed(b'{"id":7,' + b"x" * 50_000) == []
    assert decoder.pending == 0
    (overlong,) = decoder.feed(b"y\n")
    assert isinstance(overlong, Overlong)
    assert overlong.head.startswith(b'{"id":7,')
    assert len(overlong.head) == HEAD
    assert overlong.tail == b"x" * (HEAD - 1) + b"y"


def test_a_line_that_comes_a_byte_at_a_time_costs_no_more_than_its_bytes() -> None:
    decoder = LineDecoder(1 << 20)
    tracemalloc.start()
    try:
        for _ in range(200_000):
            decoder.feed(b"x")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoder.pending == 200_000
    assert held < 2 * 200_000


def test_empty_lines_and_carriage_returns_are_nothing() -> None:
    assert LineDecoder(100).feed(b"\n\r\n  \na\r\n") == [b"a"]
