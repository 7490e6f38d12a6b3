"""Snapshot and index are copies: whatever has become of them, they are made anew by themselves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon, wait
from tests.support.peers import Attached, RefusedError

FAST = {"send_messages_per_second": 10000, "send_kib_per_second": 65536}
COUNT = 50


def filled(place: Callable[..., Daemon]) -> Daemon:
    """A bus with messages and a reader that has seen none of them, stopped in order."""
    bus = place(**FAST)
    bus.start()
    with bus.peer() as peer:
        peer.attach("reader")
        sender = peer.attach("sender")
        for n in range(COUNT):
            sender.send("general", f"m{n}", f"word{n} of all")
        found(sender, "word7", ["m7"])
        bus.wait_until(lambda status: status["index"]["documents"] == COUNT)
    bus.stop()
    return bus


def found(session: Attached, query: str, expected: list[str]) -> None:
    """Checks what a search finds, once the index is there again."""
    results: list[dict[str, Any]] = []

    def answers() -> bool:
        try:
            results[:] = session.call("search", query=query, limit=100)["results"]
        except RefusedError as refused:
            if not refused.data["retryable"]:
                raise
            return False
        return True

    assert wait(answers)
    assert sorted(each["message"]["message_id"] for each in results) == sorted(expected)


def spoil(path: str, how: str) -> None:
    """What happens to a file."""
    assert os.path.getsize(path) > 100
    if how == "missing":
        os.unlink(path)
    elif how == "empty":
        os.truncate(path, 0)
    elif how == "truncated":
        os.truncate(path, os.path.getsize(path) // 2)
    elif how == "flipped":
        content = bytearray(Path(path).read_bytes())
        for at in range(len(content) // 4, len(content), 97):
            content[at] ^= 0xFF
        Path(path).write_bytes(content)
    else:
        Path(path).write_bytes(os.urandom(os.path.getsize(path)))


FATES = ["missing", "empty", "truncated", "flipped", "garbage"]


@pytest.mark.parametrize("fate", FATES)
def test_a_lost_snapshot_is_made_anew_from_the_database(
    place: Callable[..., Daemon], fate: str
) -> None:
    bus = filled(place)
    spoil(os.path.join(bus.paths.snapshot_directory, "dump.rdb"), fate)
    whole(bus)


@pytest.mark.parametrize("fate", FATES)
def test_a_lost_index_is_made_anew_from_the_database(
    place: Callable[..., Daemon], fate: str
) -> None:
    bus = filled(place)
    spoil(bus.paths.index, fate)
    whole(bus)


def whole(bus: Daemon) -> None:
    """Nobody has to do anything: the reader gets what it has not seen, searches find it all."""
    began = time.monotonic()
    bus.start()
    with bus.peer() as peer:
        reader = peer.attach("reader")
        seen = [each["message_id"] for each in reader.receive(COUNT)]
        print(f"measured: {time.monotonic() - began:.3f} s")
        assert seen == [f"m{n}" for n in range(COUNT)]
        found(reader, "word7", ["m7"])
        found(reader, "all", [f"m{n}" for n in range(COUNT)])
        reader.send("general", "next", "word7 again")
        found(reader, "word7", ["m7", "next"])
    assert bus.status()["state"] == "ready"
