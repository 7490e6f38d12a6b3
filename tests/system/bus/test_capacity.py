"""A budget filled through the public path: the bus goes on, and says exactly what went."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from typing import Any

import pytest

from agentbus.config import MIB
from tests.support.daemon import Daemon
from tests.support.peers import Attached, Peer, RefusedError

SIZE = 60_000
COUNT = 1100
"""Together about as much as the budget holds, so that the oldest fifth and more has to go."""

SETTINGS = {
    "redis_budget_mib": 64,
    "sqlite_budget_mib": 64,
    "cleanup_interval_seconds": 5,
    "send_messages_per_second": 10_000,
    "send_kib_per_second": 65_536,
    "prefetch_messages": 16,
}


class Account:
    """What a subscriber was given of a channel, position by position."""

    def __init__(self, attached: Attached, channel: str) -> None:
        self.attached = attached
        (self.cursor,) = [
            cursor
            for cursor in attached.registered["subscriptions"]
            if cursor["channel"] == channel
        ]
        self.seqs: list[int] = []
        self.lost = 0
        self.position = self.cursor["position"]

    def take_until(self, top: int) -> None:
        """Everything up to a position, reported as it comes."""
        while self.position < top:
            note = self.attached.peer.note(lambda note: note["method"] == "deliver")["params"]
            for gap in note.get("gaps", []):
                assert gap["after_seq"] == self.position
                assert gap["lost"] <= gap["resumed_at_seq"] - gap["after_seq"] - 1
                self.lost += gap["lost"]
                self.position = gap["resumed_at_seq"] - 1
            self.seqs += [message["seq"] for message in note["messages"]]
            self.position = note["through"]
            self.attached.epoch = note["epoch"]
            self.attached.report(note["subscription"], note["through"])


def send_all(sender: Attached, count: int) -> int:
    """Sends, a few at a time; the position of the last one. Nothing may be refused for good."""
    top = 0
    waiting: deque[tuple[int, dict[str, Any]]] = deque()
    for number in range(count):
        params = {
            "attachment": sender.id,
            "channel": "general",
            "message_id": f"{sender.id}-{number}",
            "content": f"{number:08}" + "x" * SIZE,
        }
        waiting.append((sender.peer.request("send", **params), params))
        if len(waiting) > 16:
            top = max(top, settled(sender.peer, *waiting.popleft()))
    while waiting:
        top = max(top, settled(sender.peer, *waiting.popleft()))
    return top


def settled(peer: Peer, number: int, params: dict[str, Any]) -> int:
    try:
        return int(peer.result(number)["seq"])
    except RefusedError as error:
        if error.code != "rate_limited":
            raise
        return settled(peer, peer.request("send", **params), params)


@pytest.mark.timeout(240)
def test_cleanup_keeps_the_bus_sending_and_gaps_add_up_to_what_was_evicted():
    with Daemon(**SETTINGS) as bus:
        bus.start()
        bus.wait_until(lambda status: status["state"] == "ready")
        with bus.peer() as one, bus.peer() as two, bus.peer() as three:
            sender = one.attach("sender")
            two.attach("away").call("release")
            late = Account(two.attach("late"), "general")
            other = Account(three.attach("other"), "general")
            own = other.attached.send("general", "own-1", "mine")["seq"]
            top = send_all(sender, COUNT)
            status = bus.status()
            evicted = status["totals"]["evicted"]
            assert evicted > COUNT // 10
            for name in ("redis", "sqlite"):
                budget = status["budgets"][name]
                assert budget["used"] <= budget["limit"] == 64 * MIB
                assert status["redis"]["dataset_bytes"] <= 64 * MIB
            other.take_until(top)
            late.take_until(top)
            check_who_was_away(bus, two, top)
        assert len(late.seqs) + late.lost == COUNT + 1
        assert len(other.seqs) + other.lost == COUNT
        assert own not in other.seqs
        for account in (late, other):
            assert account.seqs == sorted(set(account.seqs))
            assert account.lost > 0
        check_nothing_returns(bus)


def check_who_was_away(bus: Daemon, peer: Peer, top: int) -> None:
    """Whoever was given nothing has lost exactly what was evicted."""
    before = evictions(bus)
    away = Account(peer.attach("away"), "general")
    away.take_until(top)
    assert before <= away.lost <= evictions(bus)
    assert away.seqs == list(range(away.lost + 1, top + 1))


def evictions(bus: Daemon) -> int:
    count: int = bus.status()["totals"]["evicted"]
    return count


def check_nothing_returns(bus: Daemon) -> None:
    """After the projection was made anew, what was evicted is not in it."""
    kept = oldest(bus)
    assert kept > 1
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(bus.paths.snapshot_directory, "dump.rdb"))
    pid = bus.kill("redis")
    bus.wait_until(
        lambda status: (
            status["state"] == "ready"
            and any(p["name"] == "redis" and p["pid"] != pid for p in status["processes"])
        )
    )
    assert oldest(bus) >= kept
    bus.stop()
    bus.start()
    bus.wait_until(lambda status: status["state"] == "ready")
    assert oldest(bus) >= kept


def oldest(bus: Daemon) -> int:
    """The oldest position that history shows of the channel."""
    with bus.peer() as peer:
        history = peer.attach("historian").call("history", channel="general", after=0, limit=1)
    seq: int = history["messages"][0]["seq"]
    return seq
