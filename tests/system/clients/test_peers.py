"""Peers of the daemon's socket that behave badly: alone with it, and for a bounded price."""

from __future__ import annotations

import itertools
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import pytest

from agentbus.wire.rpc import MAX_LINE
from tests.support.daemon import Daemon, wait
from tests.support.peers import Peer
from tests.system.clients.conftest import FAST, MIB, descriptors, resident

GARBAGE = 100 * MIB
GROWTH = 32 * MIB
"""What a bad peer may cost the gateway at most: one line of 8 MiB, held twice for a moment."""

CROWD = 500


_runs = itertools.count()


def talk(bus: Daemon) -> float:
    """A message from one new session to another; seconds."""
    run = f"talk-{next(_runs)}"
    with bus.peer() as one, bus.peer() as other:
        sender, reader = one.attach(f"{run}-sender"), other.attach(f"{run}-reader")
        began = time.monotonic()
        sender.send("general", f"{run}-message", run)
        assert [message["content"] for message in reader.receive(1)] == [run]
        return time.monotonic() - began


def pushed(bus: Daemon, garbage: bytes) -> tuple[int, float]:
    """100 MB of it on one connection: by how much the gateway grew at most, and how long the
    slowest message of others took meanwhile. The connection answers afterwards."""
    gateway = bus.pid("gateway")
    talk(bus)
    before = most = resident(gateway)
    slowest = 0.0
    with bus.peer() as peer:
        for number in range(GARBAGE // len(garbage)):
            peer.write(garbage)
            most = max(most, resident(gateway))
            if number % 25 == 0:
                slowest = max(slowest, talk(bus))
        peer.write(b"\n")
        assert peer.call("status")["status"]["state"] == "ready"
        assert peer.attach(f"after-{garbage[:2]!r}").call("channel.list")
    return most - before, slowest


def test_half_a_line_and_then_silence_holds_up_nobody(bus: Daemon) -> None:
    with bus.peer() as silent:
        attached = silent.attach("half")
        params = {"attachment": attached.id, "channel": "general", "content": "whole"}
        request = {"jsonrpc": "2.0", "id": "late", "method": "send"}
        document = request | {"params": params | {"message_id": "half"}}
        line = msgspec.json.encode(document) + b"\n"
        silent.write(line[:40])
        talk(bus)
        silent.write(line[40:])
        assert silent.result("late")["seq"]


def test_half_a_line_of_a_peer_that_goes_is_nothing(bus: Daemon) -> None:
    with bus.peer() as gone:
        attached = gone.attach("half-gone")
        line = msgspec.json.encode(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "send",
                "params": {
                    "attachment": attached.id,
                    "channel": "general",
                    "message_id": "never",
                    "content": "x",
                },
            }
        )
        gone.write(line)  # whole but for its end
    with bus.peer() as peer:
        reader = peer.attach("half-reader")
        found = reader.call("history", channel="general", limit=1000)["messages"]
        assert "never" not in [message["message_id"] for message in found]


def test_a_megabyte_without_an_end_from_many_is_bounded_each(bus: Daemon) -> None:
    gateway = bus.pid("gateway")
    before = resident(gateway)
    peers = [bus.peer() for _ in range(8)]
    try:
        for peer in peers:
            peer.write(b"x" * (MAX_LINE + MIB))  # past the ceiling: thrown away as it comes
        talk(bus)
        assert resident(gateway) - before < GROWTH
    finally:
        for peer in peers:
            peer.close()


@pytest.mark.parametrize(
    "garbage",
    [b"x" * MIB, b"x\n" * (MIB // 2), os.urandom(MIB), b'{"id":1}\n' * (MIB // 9), b"\n" * MIB],
    ids=["one line", "short lines", "bytes", "requests that are none", "empty lines"],
)
@pytest.mark.timeout(300)
def test_a_hundred_megabytes_of_garbage_cost_little(bus: Daemon, garbage: bytes) -> None:
    if garbage.count(b"\n") > 1 and garbage.strip(b"\n"):
        growth, slowest = flooded(bus, garbage)
    else:
        growth, slowest = pushed(bus, garbage)
    assert growth < GROWTH
    assert slowest < 5


def flooded(bus: Daemon, garbage: bytes) -> tuple[int, float]:
    """Garbage that is answered, from a peer that reads none of it: cut off, alone."""
    gateway = bus.pid("gateway")
    talk(bus)
    before = most = resident(gateway)
    slowest, written = 0.0, 0
    with bus.peer() as peer, suppress(ConnectionError, TimeoutError):
        peer.socket.settimeout(10)
        while written < GARBAGE:
            peer.write(garbage)
            written += len(garbage)
            most = max(most, resident(gateway))
            slowest = max(slowest, talk(bus))
    assert written < GARBAGE, "it was read to its end although nobody took the answers"
    talk(bus)
    return most - before, slowest


def test_a_peer_that_never_reads_is_dropped_and_its_memory_with_it(bus: Daemon) -> None:
    gateway = bus.pid("gateway")
    before = resident(gateway)
    with bus.peer() as deaf:
        deaf.attach("deaf")
        deaf.socket.settimeout(10)
        with suppress(ConnectionError, TimeoutError):
            for _ in range(10_000):
                deaf.write(b'{"jsonrpc":"2.0","id":1,"method":"channel.list"}\n' * 2000)
        assert wait(lambda: "deaf" not in sessions(bus))
        talk(bus)
    assert wait(lambda: resident(gateway) - before < GROWTH)
    log = os.path.join(bus.paths.log_directory, "gateway.log")
    with open(log, encoding="utf-8") as file:
        assert "action=cut_off" in file.read()


def sessions(bus: Daemon) -> set[str]:
    """Those that are attached."""
    return {row["session"] for row in bus.status()["sessions"] if row["attached"]}


def test_many_half_lines_are_bounded_together_and_who_holds_little_stays(bus: Daemon) -> None:
    gateway = bus.pid("gateway")
    before = most = resident(gateway)
    half = b"x" * (MAX_LINE - MIB)
    peers: list[Peer] = []
    with bus.peer() as modest:
        modest.write(b'{"jsonrpc":"2.0","id":"half",')
        try:
            for _ in range(40):  # 280 MiB, if all of it was held
                peers.append(bus.peer())
                with suppress(ConnectionError):
                    peers[-1].write(half)
                most = max(most, resident(gateway))
            assert talk(bus) < 5
            assert most - before < 128 * MIB + GROWTH
        finally:
            for peer in peers:
                peer.close()
        modest.write(b'"method":"status"}\n')
        assert modest.result("half")["status"]["state"] == "ready"


# many


@contextmanager
def crowd(bus: Daemon, size: int) -> Iterator[list[Peer]]:
    peers: list[Peer] = []
    try:
        for _ in range(size):
            peers.append(bus.peer())  # noqa: PERF401 - those there are must be closed
        yield peers
    finally:
        for peer in peers:
            peer.close()


@contextmanager
def soft_limit(descriptors_: int) -> Iterator[None]:
    """What processes started within it inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors_, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_five_hundred_idle_connections_are_nothing_where_the_soft_limit_is_low() -> None:
    with Daemon(**FAST) as bus:
        with soft_limit(256):
            bus.start()
        gateway = bus.pid("gateway")
        before, memory = descriptors(gateway), resident(gateway)
        with crowd(bus, CROWD) as peers:
            assert descriptors(gateway) - before >= CROWD - 1
            for number in range(0, CROWD, 50):
                peers[number].attach(f"idle-{number}")
            assert talk(bus) < 5
            assert resident(gateway) - memory < GROWTH
            for peer in peers:
                peer.call("heartbeat")
        assert wait(lambda: descriptors(gateway) <= before + 2)
        assert wait(lambda: not [name for name in sessions(bus) if name.startswith("idle")])


def test_beyond_the_hard_limit_connections_are_refused_and_the_rest_go_on(bus: Daemon) -> None:
    gateway = bus.pid("gateway")
    limits = resource.prlimit(gateway, resource.RLIMIT_NOFILE)
    with bus.peer() as first:
        attached = first.attach("first")
        resource.prlimit(gateway, resource.RLIMIT_NOFILE, (descriptors(gateway) + 20, limits[1]))
        refused, peers = 0, []
        try:
            for _ in range(60):
                try:
                    peers.append(bus.peer())
                except (EOFError, ConnectionError):
                    refused += 1
            assert refused >= 35
            assert attached.send("general", "while-full", "x")["seq"]
        finally:
            for peer in peers:
                peer.close()
            resource.prlimit(gateway, resource.RLIMIT_NOFILE, limits)
    assert wait(lambda: talk(bus) < 5)


def vanish(bus: Daemon, number: int) -> None:
    """One of the ways to go without a word."""
    peer = Peer(bus.paths.socket, greet=number % 5 > 0)
    try:
        match number % 5:
            case 1:
                peer.request("register", application="tests", session=f"gone-{number}")
            case 2:
                peer.attach(f"gone-{number}")
            case 3:
                peer.write(b'{"jsonrpc":"2.0","id":1,"meth')
            case 4:
                attached = peer.attach(f"gone-{number}")
                params: dict[str, Any] = {"channel": "general", "content": "x"}
                params |= {"attachment": attached.id, "message_id": f"gone-{number}"}
                peer.request("send", **params)
            case _:
                pass
    finally:
        peer.close()


def test_fifty_that_connect_and_vanish_each_second_leave_nothing(bus: Daemon) -> None:
    gateway = bus.pid("gateway")
    for number in range(50):
        vanish(bus, number)
    talk(bus)
    before, memory = descriptors(gateway), resident(gateway)
    began = time.monotonic()
    for number in range(50, 300):
        vanish(bus, number)
        if number % 50 == 0:
            talk(bus)
        late = began + (number - 49) / 50 - time.monotonic()
        if late > 0:
            time.sleep(late)  # fifty each second, no more
    assert wait(lambda: descriptors(gateway) <= before)
    assert wait(lambda: not [name for name in sessions(bus) if name.startswith("gone")])
    assert resident(gateway) - memory < GROWTH
    # what they had sent was either accepted or not, and is there once at most
    with bus.peer() as peer:
        found = peer.attach("counting").call("history", channel="general", limit=1000)["messages"]
    ids = [message["message_id"] for message in found]
    assert len(ids) == len(set(ids))
