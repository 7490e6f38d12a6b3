"""What descriptors tell without being read."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable

import pytest

from agentbus.adapter.shell import has_hung_up

Pair = tuple[int, Callable[[bytes], object], Callable[[], None]]


def pipe() -> Pair:
    reader, writer = os.pipe()
    return reader, lambda data: os.write(writer, data), lambda: os.close(writer)


def sockets() -> Pair:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.send, theirs.close


def half_closed() -> Pair:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.send, lambda: theirs.shutdown(socket.SHUT_WR)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("make", [pipe, sockets, half_closed])
def test_the_end_of_an_input_is_seen_behind_what_was_not_read(make: Callable[[], Pair]) -> None:
    fd, write, close = make()
    try:
        assert not has_hung_up(fd)
        write(b"unread")
        assert not has_hung_up(fd)
        close()
        assert has_hung_up(fd)
        assert os.read(fd, 100) == b"unread"
    finally:
        os.close(fd)


def test_a_file_does_not_hang_up() -> None:
    with tempfile.TemporaryFile() as file:
        assert not has_hung_up(file.fileno())
