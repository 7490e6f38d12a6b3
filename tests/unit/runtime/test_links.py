from __future__ import annotations

import asyncio
import os
import socket

import pytest
import uvloop

from agentbus.errors import InternalError
from agentbus.runtime import links
from agentbus.runtime.links import ControlLink, Link
from agentbus.wire import framing
from agentbus.wire.links import Hand, Ping, ToChild

BOUND = 10


class Peer:
    """What a link's callbacks heard, and the socket at its other end."""

    def __init__(self, kind=Link, union=Ping) -> None:
        mine, self.socket = socket.socketpair()
        self.socket.setblocking(False)
        self.heard: list[object] = []
        self.ended = asyncio.get_running_loop().create_future()
        self.failed = asyncio.get_running_loop().create_future()
        self.link = kind(
            asyncio.get_running_loop(),
            mine,
            union,
            self.heard.extend,
            lambda: self.ended.set_result(None),
            self.failed.set_result,
        )
        self.link.open()
        peers.append(self)


peers: list[Peer] = []


@pytest.fixture(autouse=True)
def _clean():
    yield
    for peer in peers:
        peer.socket.close()
    peers.clear()


def run(main) -> None:
    async def bounded():
        try:
            await asyncio.wait_for(main(), BOUND)
        finally:
            for peer in peers:
                peer.link.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(bounded())


def test_what_a_dead_peer_wrote_is_all_heard_before_the_end():
    async def main():
        peer = Peer()
        peer.socket.sendall(b"".join(framing.encode(Ping(n)) for n in range(1000)))
        peer.socket.close()
        await peer.ended
        assert peer.heard == [Ping(n) for n in range(1000)]
        assert peer.link.closed

    run(main)


def test_a_failed_write_loses_nothing_of_what_the_peer_wrote():
    """The peer died with unread data, which a transport answers by closing at once."""

    async def main():
        peer = Peer()
        peer.link.send(Ping(0))
        peer.link.flush()
        peer.socket.sendall(b"".join(framing.encode(Ping(n)) for n in range(1000)))
        peer.socket.close()
        for n in range(10):
            peer.link.send(Ping(n))
            peer.link.flush()
        await peer.ended
        assert peer.heard == [Ping(n) for n in range(1000)]

    run(main)


def test_more_than_one_turn_can_read_still_ends_in_the_end(monkeypatch):
    monkeypatch.setattr(links, "READ_BYTES", 64)

    async def main():
        peer = Peer()
        peer.link.send(Ping(0))  # stays unread: libuv reports this death only once
        peer.link.flush()
        peer.socket.sendall(b"".join(framing.encode(Ping(n)) for n in range(5000)))
        peer.socket.close()
        peer.link.read_out()
        await peer.ended
        assert peer.heard == [Ping(n) for n in range(5000)]

    run(main)


def test_a_peer_that_died_with_unread_data_is_noticed_once_it_is_known_to_be_gone():
    """What libuv reports once is used up by the read that finds data."""

    async def main():
        peer = Peer()
        peer.link.send(Ping(0))
        peer.link.flush()
        peer.socket.sendall(framing.encode(Ping(1)))
        peer.socket.close()
        while not peer.heard:  # noqa: ASYNC110 - until libuv has reported it
            await asyncio.sleep(0)
        peer.link.read_out()
        await peer.ended

    run(main)


def test_the_end_of_a_control_link_is_always_noticed():
    async def main():
        peer = Peer(ControlLink, ToChild)
        peer.link.send(Ping(0))
        peer.link.flush()
        peer.socket.sendall(framing.encode(Ping(1)))
        peer.socket.close()
        await peer.ended
        assert peer.heard == [Ping(1)]

    run(main)


def test_a_partial_frame_is_discarded_at_the_end():
    async def main():
        peer = Peer()
        peer.socket.sendall(bytes(framing.encode(Ping(1)) + framing.encode(Ping(2))[:-1]))
        peer.socket.close()
        await peer.ended
        assert peer.heard == [Ping(1)]

    run(main)


def test_nothing_is_written_before_the_flush():
    async def main():
        peer = Peer()
        peer.link.send(Ping(1))
        with pytest.raises(BlockingIOError):
            peer.socket.recv(100)
        peer.link.send(Ping(2))
        peer.link.flush()
        assert framing.FrameDecoder(Ping).feed(peer.socket.recv(100)) == [Ping(1), Ping(2)]

    run(main)


def test_what_the_socket_does_not_take_follows_as_the_peer_reads():
    async def main():
        peer = Peer()
        for n in range(200_000):
            peer.link.send(Ping(n))
        drained = asyncio.ensure_future(peer.link.drained())
        decoder = framing.FrameDecoder(Ping)
        received: list[Ping] = []
        loop = asyncio.get_running_loop()
        while len(received) < 200_000:
            received += decoder.feed(await loop.sock_recv(peer.socket, 1 << 20))
        await drained
        assert received == [Ping(n) for n in range(200_000)]


def test_what_is_sent_while_the_socket_is_full_follows_whole():
    async def main():
        peer = Peer()
        for n in range(200_000):
            peer.link.send(Ping(n))
            if n % 997 == 0:
                peer.link.flush()
        decoder = framing.FrameDecoder(Ping)
        received: list[Ping] = []
        loop = asyncio.get_running_loop()
        drained = asyncio.ensure_future(peer.link.drained())
        while len(received) < 200_000:
            received += decoder.feed(await loop.sock_recv(peer.socket, 10_000))
        await drained
        assert received == [Ping(n) for n in range(200_000)]

    run(main)


def test_two_links_that_flood_each_other_do_not_deadlock():
    async def main():
        loop = asyncio.get_running_loop()
        a, b = socket.socketpair()
        counts = {"a": 0, "b": 0}
        done = loop.create_future()

        def counted(name):
            def count(messages):
                counts[name] += len(messages)
                if min(counts.values()) == 100_000:
                    done.set_result(None)

            return count

        ends = [
            Link(loop, end, Ping, counted(name), lambda: None, done.set_exception)
            for name, end in (("a", a), ("b", b))
        ]
        for end in ends:
            end.open()
            for n in range(100_000):
                end.send(Ping(n))
            end.flush()
        await done
        for end in ends:
            end.close()

    run(main)


def test_sending_to_a_closed_link_is_no_error():
    async def main():
        peer = Peer()
        peer.socket.close()
        await peer.ended
        peer.link.send(Ping(1))
        peer.link.flush()
        await peer.link.drained()

    run(main)


def test_flushing_a_link_that_closed_with_something_unwritten_is_no_error():
    async def main():
        peer = Peer()
        peer.link.send(Ping(1))
        peer.socket.close()
        await peer.ended
        peer.link.flush()
        await peer.link.drained()

    run(main)


def test_draining_ends_when_the_peer_dies():
    async def main():
        peer = Peer()
        for n in range(200_000):
            peer.link.send(Ping(n))
        drained = asyncio.ensure_future(peer.link.drained())
        await asyncio.sleep(0)
        peer.socket.close()
        await drained

    run(main)


def test_bytes_that_are_no_frame_are_an_error_and_the_last_read():
    async def main():
        peer = Peer()
        peer.socket.sendall(framing.encode(Ping(1)) + b"\xff" * 100)
        assert isinstance(await peer.failed, InternalError)
        assert peer.link.closed
        assert not peer.ended.done()

    run(main)


def test_what_a_handler_raises_is_passed_on():
    async def main():
        peer = Peer()
        peer.link._on_messages = lambda messages: 1 / 0
        peer.socket.sendall(framing.encode(Ping(1)))
        assert isinstance(await peer.failed, ZeroDivisionError)

    run(main)


def test_closing_twice_is_nothing():
    async def main():
        peer = Peer()
        peer.link.close()
        peer.link.close()
        assert peer.socket.recv(1) == b""

    run(main)


def test_a_control_link_carries_descriptors_with_the_frames_that_announce_them():
    async def main():
        loop = asyncio.get_running_loop()
        mine, theirs = socket.socketpair()
        taken = loop.create_future()

        def heard(messages):
            for message in messages:
                if isinstance(message, Hand):
                    taken.set_result((message, control.take_socket()))

        control = ControlLink(
            loop, mine, ToChild, heard, lambda: None, lambda error: taken.set_exception(error)
        )
        control.open()
        left, right = socket.socketpair()
        frame = framing.encode(Hand("a-b", 7))
        theirs.sendall(framing.encode(Ping(1)))
        socket.send_fds(theirs, [frame[:3]], [left.fileno()])
        left.close()
        await asyncio.sleep(0)
        theirs.sendall(frame[3:])
        message, end = await taken
        assert message == Hand("a-b", 7)
        assert not os.get_inheritable(end.fileno())
        end.sendall(b"hello")
        assert right.recv(10) == b"hello"
        for sock in (end, right, theirs):
            sock.close()
        control.close()

    run(main)


def test_an_announced_descriptor_that_did_not_come_is_an_error():
    async def main():
        peer = Peer(ControlLink, ToChild)
        peer.link._on_messages = lambda messages: peer.link.take_socket()
        peer.socket.sendall(framing.encode(Hand("a-b", 1)))
        assert isinstance(await peer.failed, InternalError)

    run(main)
