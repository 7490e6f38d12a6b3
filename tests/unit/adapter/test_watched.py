"""What is waited for, on pipes of the test's own."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Iterator

import pytest

from agentbus.adapter.watched import Watched


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        with contextlib.suppress(OSError):
            os.close(fd)


def test_what_is_there_is_told_at_once(pipe):
    reader, writer = pipe
    watched = Watched()
    watched.watch(reader, select.POLLIN)
    assert watched.wait(0.0) == []
    os.write(writer, b"x")
    assert watched.wait(None) == [reader]


def test_an_end_is_told_as_something_to_read(pipe):
    reader, writer = pipe
    watched = Watched()
    watched.watch(reader, select.POLLIN)
    os.close(writer)
    assert watched.wait(None) == [reader]


@pytest.mark.parametrize("stop", [lambda it, fd: it.watch(fd, 0), lambda it, fd: it.forget(fd)])
def test_what_is_not_watched_any_more_is_not_told_not_even_its_end(pipe, stop):
    reader, writer = pipe
    watched = Watched()
    watched.watch(reader, select.POLLIN)
    stop(watched, reader)
    os.close(writer)
    assert watched.wait(0.0) == []


def test_what_is_waited_for_can_change(pipe):
    _, writer = pipe
    watched = Watched()
    watched.watch(writer, select.POLLIN)
    assert watched.wait(0.0) == []
    watched.watch(writer, select.POLLIN | select.POLLOUT)
    assert watched.wait(0.0) == [writer]
    watched.watch(writer, select.POLLIN)
    assert watched.wait(0.0) == []


def test_what_was_never_watched_or_is_no_descriptor_can_be_forgotten():
    watched = Watched()
    watched.forget(-1)
    watched.forget(999)
    assert watched.wait(0.0) == []


def test_a_number_can_be_watched_again_for_another_descriptor(pipe):
    reader, writer = pipe
    watched = Watched()
    copy = os.dup(reader)
    watched.watch(copy, select.POLLIN)
    watched.forget(copy)
    os.close(copy)
    os.dup2(reader, copy)
    try:
        watched.watch(copy, select.POLLIN)
        os.write(writer, b"x")
        assert watched.wait(0.0) == [copy]
    finally:
        os.close(copy)


def test_a_part_of_a_millisecond_is_waited_for_and_not_spun_over():
    watched = Watched()
    began = time.perf_counter()
    assert watched.wait(0.0004) == []
    assert time.perf_counter() - began >= 0.0004
