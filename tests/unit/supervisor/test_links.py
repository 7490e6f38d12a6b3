from __future__ import annotations

import socket

import pytest

from agentbus.supervisor.handover import End
from agentbus.supervisor.links import Control, Ends, Silent, make_pair
from agentbus.wire import framing
from agentbus.wire.links import Hand, Ping, Pong, Ready, ToChild

PEERS = {"a-b": ("a", "b")}


@pytest.fixture
def pair():
    mine, theirs = make_pair()
    control = Control(mine)
    yield control, theirs
    control.close()
    theirs.close()


def heard(sock: socket.socket) -> list[object]:
    return framing.FrameDecoder(ToChild).feed(sock.recv(65536))


def test_the_two_ends_of_a_pair_are_connected():
    ends = Ends(PEERS)
    one, other = ends.take(End("a-b", 1, "a")), ends.take(End("a-b", 1, "b"))
    one.sendall(b"hello")
    assert other.recv(10) == b"hello"
    one.close()
    assert other.recv(10) == b""
    other.close()


def test_another_number_is_another_pair():
    ends = Ends(PEERS)
    one, other = ends.take(End("a-b", 1, "a")), ends.take(End("a-b", 2, "b"))
    one.sendall(b"hello")
    with pytest.raises(BlockingIOError):
        other.recv(10)
    one.close()
    other.close()
    ends.close()


def test_dropping_an_end_is_the_end_of_file_for_the_other():
    ends = Ends(PEERS)
    one = ends.take(End("a-b", 1, "a"))
    ends.drop(End("a-b", 1, "b"))
    ends.drop(End("a-b", 1, "b"))
    assert one.recv(10) == b""
    one.close()


def test_a_message_is_one_frame(pair):
    control, theirs = pair
    control.tell(Ping(3))
    assert heard(theirs) == [Ping(3)]
    assert not control.waiting


def test_what_a_child_says_is_read_frame_by_frame(pair):
    control, theirs = pair
    assert control.read() == ()
    frames = framing.encode(Ready()) + framing.encode(Pong(1))
    theirs.sendall(frames[:-2])
    assert control.read() == [Ready()]
    theirs.sendall(frames[-2:])
    assert control.read() == [Pong(1)]


def test_a_closed_end_is_silent_after_its_last_words(pair):
    control, theirs = pair
    theirs.sendall(framing.encode(Ready()))
    theirs.close()
    assert control.read() == [Ready()]
    with pytest.raises(Silent):
        control.read()


def test_nonsense_is_as_good_as_silence(pair):
    control, theirs = pair
    theirs.sendall(b"\xff" * 9)
    with pytest.raises(Silent):
        control.read()


def test_an_end_is_handed_with_its_frame_and_closed_here(pair):
    control, theirs = pair
    one, other = make_pair()
    control.hand("a-b", 4, other)
    data, fds, _, _ = socket.recv_fds(theirs, 1000, 4)
    assert framing.FrameDecoder(ToChild).feed(data) == [Hand("a-b", 4)]
    assert other.fileno() == -1
    with socket.socket(fileno=fds[0]) as handed:
        handed.sendall(b"hello")
    assert one.recv(10) == b"hello"
    assert one.recv(10) == b""
    one.close()


def test_a_child_that_does_not_read_blocks_nobody_and_loses_nothing(pair):
    control, theirs = pair
    one, end = make_pair()
    count = 0
    while not control.waiting:
        control.tell(Ping(count))
        count += 1
    control.hand("a-b", 1, end)
    control.tell(Ping(-1))
    decoder = framing.FrameDecoder(ToChild)
    messages, descriptors = [], []
    while not messages or messages[-1] != Ping(-1):
        data, fds, _, _ = socket.recv_fds(theirs, 65536, 4)
        messages += decoder.feed(data)
        descriptors += fds
        control.flush()
    assert messages == [*(Ping(n) for n in range(count)), Hand("a-b", 1), Ping(-1)]
    assert len(descriptors) == 1
    socket.socket(fileno=descriptors[0]).close()
    one.close()
    assert not control.waiting


def test_ends_that_cannot_be_handed_any_more_are_closed(pair):
    control, theirs = pair
    theirs.close()
    one, other = make_pair()
    control.hand("a-b", 1, other)
    assert one.recv(10) == b""
    one.close()


def test_ends_that_still_wait_are_closed_along(pair):
    control, _ = pair
    while not control.waiting:
        control.tell(Ping(0))
    one, other = make_pair()
    control.hand("a-b", 1, other)
    control.close()
    assert one.recv(10) == b""
    one.close()
