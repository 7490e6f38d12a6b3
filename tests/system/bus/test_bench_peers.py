"""The comparison with other buses measures ours through real adapters, and says what is missing."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from bench.peers.measure import Load, Running, measure
from bench.peers.ours import CHANNEL, Ours
from bench.peers.peer import Seat, drive
from bench.peers.rpc import Refused
from bench.peers.table import OTHERS

SMALL = Load(seconds=0.3, sends=20, rows=250, searches=3)


def test_our_own_run_is_complete_and_leaves_nothing(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as base:
        result = measure(Ours, base, "", SMALL)
        assert not list(Path(base).iterdir())
    assert result.rate > 0
    assert result.refused == 0
    assert 0 < result.send <= result.send_99
    assert result.search is not None
    assert result.resident > 1
    assert result.second > 0


def test_messages_that_do_not_come_are_not_counted_as_read() -> None:
    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as base:
        peer = Ours(base, "")
        try:
            receiver = peer.receiver(peer.open())
            sender = peer.sender(peer.open(), 0)
            drive(sender.client, sender.send("one"))
            assert drive(receiver.client, receiver.read(2)) <= 1
        finally:
            peer.close()


def test_a_refused_send_is_counted_as_refused() -> None:
    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as base:
        peer = Ours(base, "")
        try:
            client = peer.open()
            running = Running(Seat(client), lambda: _send_nowhere())
            running.go_on()
            assert (running.done, running.refused) == (0, 1)
            with pytest.raises(Refused):
                drive_answer(running)
        finally:
            peer.close()


def _send_nowhere():
    yield "send", {"channel": f"{CHANNEL}-unknown", "content": ""}


def drive_answer(running: Running) -> None:
    """The request that `go_on` began is on its way still."""
    running.seat.client.finish()


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_not_installed_is_said_to_be_missing(kind: type[Ours], tmp_path: Path) -> None:
    assert kind.missing(str(tmp_path)).startswith(str(tmp_path))
