from __future__ import annotations

import asyncio
import os
import signal
import socket

import pytest

from agentbus.config import Settings
from agentbus.errors import DatabaseDamaged
from agentbus.model.ports import Instant
from agentbus.runtime import exits, tasks
from agentbus.runtime.child import Child
from agentbus.runtime.context import ChildContext, Listening
from agentbus.runtime.paths import locate
from agentbus.wire import framing
from agentbus.wire.error_codes import Failure
from agentbus.wire.events import Closed, Exit, Opened, Received, Send, TurnEnded, WakeAt, Woke
from agentbus.wire.links import (
    CONTROL,
    Failing,
    FromChild,
    Hand,
    Listen,
    Ping,
    Pong,
    Ready,
    RedisDown,
    Stop,
    Taken,
)

LINK = "a-b"


class World:
    """The supervisor and the peer of one child, and the child's application, in one thread."""

    def __init__(self) -> None:
        self.supervisor, control = socket.socketpair()
        self.peer, link = socket.socketpair()
        settings = Settings(data_directory="/nowhere")
        context = ChildContext(
            name="writer",
            settings=settings,
            config_path="",
            paths=locate(settings, {"AGENTBUS_RUNTIME_DIR": "/nowhere"}),
            control=control,
            links={LINK: link},
        )
        for sock in (self.supervisor, self.peer, control, link):
            sock.setblocking(False)
        self.child = Child(context, {LINK: Ping})
        self.events: list[object] = []
        self.closed = False
        self.decoder = framing.FrameDecoder(FromChild)
        self.on_start = None
        self.on_event = lambda event: None
        self._changed: asyncio.Event | None = None

    # the application

    async def start(self) -> None:
        self._changed = asyncio.Event()
        if self.on_start is not None:
            await self.on_start()

    def handle(self, event) -> None:
        self.events.append(event)
        self._changed.set()
        self.on_event(event)

    async def close(self) -> None:
        self.closed = True

    # the test

    def run(self, script=None) -> int:
        """Runs the child while a script plays the others; the child exits after it."""

        async def play():
            try:
                await asyncio.wait_for(script(), 10)
            finally:
                self.child.exit(0)

        failures = []

        async def with_script():
            if original is not None:
                await original()
            if script is not None:
                tasks.start(play(), "script", on_crash=failures.append)

        original, self.on_start = self.on_start, with_script
        code = self.child.run(self)
        if failures:
            raise failures[0]
        return code

    async def until(self, *events) -> None:
        """Until these have been handled, in this order, whatever lies between."""
        while True:
            rest = iter(self.events)
            if all(event in rest for event in events):
                return
            self._changed.clear()
            await self._changed.wait()

    async def said(self) -> list[object]:
        """The next messages to the supervisor."""
        loop = asyncio.get_running_loop()
        while True:
            messages = self.decoder.feed(await loop.sock_recv(self.supervisor, 65536))
            if messages:
                return messages

    def tell(self, *messages) -> None:
        self.supervisor.sendall(b"".join(framing.encode(message) for message in messages))

    def hand(self, number: int) -> socket.socket:
        """Gives the child a new end; the other."""
        mine, theirs = socket.socketpair()
        socket.send_fds(self.supervisor, [framing.encode(Hand(LINK, number))], [theirs.fileno()])
        theirs.close()
        return mine

    def listen(self) -> socket.socket:
        """Gives the child another listening socket; a copy of it."""
        listening = socket.socket(socket.AF_UNIX)
        socket.send_fds(self.supervisor, [framing.encode(Listen())], [listening.fileno()])
        return listening


@pytest.fixture
def world():
    world = World()
    yield world
    for sock in (world.supervisor, world.peer):
        sock.close()


def test_links_are_opened_after_the_start_and_bytes_become_events(world):
    async def script():
        await world.until(Opened(LINK))
        world.peer.sendall(framing.encode(Ping(1)) + framing.encode(Ping(2)))
        await world.until(TurnEnded())
        assert world.events == [
            Opened(LINK),
            Received(LINK, Ping(1)),
            Received(LINK, Ping(2)),
            TurnEnded(),
        ]

    assert world.run(script) == 0
    assert world.closed


def test_a_turn_ends_once_for_all_links(world):
    async def script():
        await world.until(Opened(LINK))
        world.peer.sendall(framing.encode(Ping(1)))
        world.tell(RedisDown("gone"))
        await world.until(TurnEnded())
        received = {Received(LINK, Ping(1)), Received(CONTROL, RedisDown("gone"))}
        assert set(world.events[1:3]) == received
        assert world.events.count(TurnEnded()) == 1

    world.run(script)


def test_sends_of_one_turn_are_one_write(world):
    async def script():
        await world.until(Opened(LINK))
        rest = world.child.perform([Send(LINK, Ping(1)), "other", Send(LINK, Ping(2))])
        assert rest == ["other"]
        data = await asyncio.get_running_loop().sock_recv(world.peer, 1000)
        assert framing.FrameDecoder(Ping).feed(data) == [Ping(1), Ping(2)]

    world.run(script)


def test_pings_are_answered_while_the_application_starts(world):
    async def start():
        world.tell(Ping(7))
        assert await world.said() == [Pong(7)]

    world.on_start = start

    async def script():
        await world.until(Opened(LINK))

    world.run(script)
    assert world.events == [Opened(LINK)]


def test_what_the_supervisor_says_early_is_heard_after_the_links_are_open(world):
    async def start():
        world.tell(RedisDown("early"), Ping(1))
        await world.said()

    world.on_start = start

    async def script():
        await world.until(Received(CONTROL, RedisDown("early")))

    world.run(script)
    assert world.events[:2] == [Opened(LINK), Received(CONTROL, RedisDown("early"))]


def test_ready_is_said_once(world):
    async def script():
        world.child.ready()
        world.child.ready()
        world.child.send(CONTROL, Pong(0))
        assert await world.said() == [Ready(), Pong(0)]

    world.run(script)


def test_waking_comes_at_the_last_time_asked_for(world):
    async def script():
        now = world.child.clock.now().monotonic
        world.child.perform([WakeAt(now + 60), WakeAt(now + 0.02)])
        await world.until(Woke())
        assert world.child.clock.now().monotonic >= now + 0.019

    world.run(script)
    assert world.events.count(Woke()) == 1


def test_waking_in_the_past_comes_at_once(world):
    async def script():
        world.child.wake_at(0)
        await world.until(Woke())

    world.run(script)


def test_a_clock_that_jumps_brings_waking_forward_to_the_next_event(world):
    real, ahead = world.child.clock, [0.0]

    class Jumping:
        def now(self):
            now = real.now()
            return Instant(now.monotonic + ahead[-1], now.wall)

    world.child.clock = Jumping()
    world.on_event = lambda event: world.child.now()

    async def script():
        await world.until(Opened(LINK))
        for number in (1, 2):
            world.child.wake_at(world.child.now().monotonic + 60)
            ahead.append(3600.0 * number)
            world.peer.sendall(framing.encode(Ping(number)))
            await world.until(Received(LINK, Ping(number)), Woke())
            world.child.now()

    world.run(script)
    assert world.events.count(Woke()) == 2


def test_a_new_end_is_used_after_the_old_ones_last_byte(world):
    async def script():
        await world.until(Opened(LINK))
        new = world.hand(3)
        new.sendall(framing.encode(Ping(100)))
        world.tell(Ping(1))
        assert await world.said() == [Pong(1)]  # it has been handed and waits
        assert world.events.count(Opened(LINK)) == 1
        world.peer.sendall(framing.encode(Ping(1)) + framing.encode(Ping(2))[:3])
        world.peer.close()
        assert await world.said() == [Taken(LINK, 3)]
        await world.until(Received(LINK, Ping(100)))
        about_links = [event for event in world.events if event != TurnEnded()]
        assert about_links == [
            Opened(LINK),
            Received(LINK, Ping(1)),
            Closed(LINK),
            Opened(LINK),
            Received(LINK, Ping(100)),
        ]
        world.child.send(LINK, Ping(5))
        new.setblocking(False)
        data = await asyncio.get_running_loop().sock_recv(new, 100)
        assert data == framing.encode(Ping(5))
        new.close()

    world.run(script)


def test_a_new_end_for_a_link_that_has_closed_is_used_at_once(world):
    async def script():
        await world.until(Opened(LINK))
        world.peer.close()
        await world.until(Closed(LINK))
        world.child.send(LINK, Ping(9))  # dropped, not kept for the successor
        new = world.hand(1)
        assert await world.said() == [Taken(LINK, 1)]
        new.setblocking(False)
        world.child.send(LINK, Ping(1))
        assert await asyncio.get_running_loop().sock_recv(new, 100) == framing.encode(Ping(1))
        new.close()

    world.run(script)


def test_a_new_end_that_comes_while_starting_waits_for_the_first_one(world):
    ends = []

    async def start():
        world.peer.sendall(framing.encode(Ping(1)))
        world.peer.close()
        ends.append(world.hand(1))
        world.tell(Ping(1))
        await world.said()

    world.on_start = start

    async def script():
        await world.until(Opened(LINK), Received(LINK, Ping(1)), Closed(LINK), Opened(LINK))
        ends[0].close()

    world.run(script)


def test_sigterm_is_an_orderly_stop(world):
    async def script():
        os.kill(os.getpid(), signal.SIGTERM)
        await world.until(Received(CONTROL, Stop()))

    assert world.run(script) == 0


def test_what_was_sent_before_the_exit_is_written(world):
    def stop(event):
        if event == Opened(LINK):
            world.child.perform([Send(LINK, Ping(n)) for n in range(100)] + [Exit(3)])

    world.on_event = stop
    peer = os.dup(world.peer.fileno())
    assert world.child.run(world) == 3
    received = os.read(peer, 65536)
    assert framing.FrameDecoder(Ping).feed(received) == [Ping(n) for n in range(100)]
    os.close(peer)


def test_after_the_exit_no_event_is_handled(world):
    world.on_event = lambda event: world.child.exit(0)

    async def script():
        await world.until(Opened(LINK))
        world.peer.sendall(framing.encode(Ping(1)))

    world.run(script)
    assert world.events == [Opened(LINK)]


def test_a_set_up_error_at_the_start_is_told_to_the_supervisor(world):
    async def start():
        raise DatabaseDamaged("look at it")

    world.on_start = start
    supervisor = os.dup(world.supervisor.fileno())
    assert world.run() == exits.FAILING
    (message,) = world.decoder.feed(os.read(supervisor, 65536))
    os.close(supervisor)
    assert message == Failing(Failure("database_damaged", "look at it"))
    assert world.events == []


def test_an_unforeseen_error_at_the_start_is_a_crash(world, caplog):
    async def start():
        raise ZeroDivisionError

    world.on_start = start
    assert world.run() == exits.CRASHED
    assert [record.message for record in caplog.records] == ["crashed"]


def test_an_error_in_a_handler_is_a_crash(world, caplog):
    def fail(event):
        raise ZeroDivisionError

    world.on_event = fail
    assert world.run() == exits.CRASHED
    assert [record.fields["during"] for record in caplog.records] == ["Opened"]
    assert world.closed


def test_nonsense_on_a_link_is_a_crash(world, caplog):
    async def start():
        world.peer.sendall(b"\xff" * 10)

    world.on_start = start
    assert world.run() == exits.CRASHED


def test_what_a_callback_of_the_loop_raises_is_logged(world, caplog):
    async def script():
        await world.until(Opened(LINK))
        world.child.loop.call_soon(lambda: 1 / 0)
        world.child.loop.call_exception_handler({"message": "no exception at all"})
        world.child.wake_at(0)
        await world.until(Woke())

    world.run(script)
    assert [record.message for record in caplog.records] == ["loop_error", "loop_error"]


def test_an_error_while_closing_is_logged_and_counts(world, caplog):
    async def close():
        raise ZeroDivisionError

    world.close = close
    world.on_event = lambda event: world.child.exit(0)
    assert world.run() == exits.CRASHED
    assert [record.message for record in caplog.records] == ["close_crashed"]


def test_the_end_of_the_control_link_ends_the_process_at_once(world, monkeypatch):
    """Everything after it would hold up a new daemon, so that not even `close` is waited for."""

    class Ended(BaseException):
        pass

    ended = []

    def end(code):
        ended.append((code, list(world.events), world.closed))
        world.child.exit(0)

    monkeypatch.setattr(os, "_exit", end)

    async def script():
        await world.until(Opened(LINK))
        world.supervisor.close()
        await world.until(Closed(CONTROL))

    world.run(script)
    assert ended == [(exits.ORPHANED, [Opened(LINK), Closed(CONTROL)], False)]


@pytest.mark.parametrize("early", [True, False])
def test_another_listening_socket_is_an_event_also_of_before_the_start(world, early):
    given = []

    async def start():
        if early:
            given.append(world.listen())
            await asyncio.sleep(0.05)  # so that it is read before the start has returned

    async def script():
        await world.until(Opened(LINK))
        if not early:
            given.append(world.listen())
        while not any(isinstance(event, Listening) for event in world.events):
            world._changed.clear()
            await world._changed.wait()
        (got,) = [event.socket for event in world.events if isinstance(event, Listening)]
        with got, given[0] as sent:
            assert os.fstat(got.fileno()).st_ino == os.fstat(sent.fileno()).st_ino

    world.on_start = start
    world.run(script)
