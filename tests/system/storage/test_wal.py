"""The WAL of a bus that is never quiet, beside readers that do nothing.

Scaled down; at full size: `AGENTBUS_SENDS=200000 pytest tests/system/storage/test_wal.py`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack, closing

import pytest

from agentbus.writer.tidy import WAL_LIMIT_BYTES
from tests.support.daemon import Daemon
from tests.support.peers import Attached

SENDS = int(os.environ.get("AGENTBUS_SENDS", "8000"))
READERS = 20
AT_ONCE = 50
"""Sends under way at a time: what a lane takes."""

BEAT_SECONDS = 5.0


@pytest.mark.timeout(900)
def test_row_19_the_wal_stays_under_64_mib_beside_idle_readers(
    place: Callable[..., Daemon],
) -> None:
    bus = place(send_messages_per_second=10000, send_kib_per_second=65536)
    bus.start()
    largest = sent = 0
    with ExitStack() as stack:
        peers = [stack.enter_context(bus.peer()) for _ in range(READERS)]
        for number, peer in enumerate(peers):
            peer.attach(f"reader-{number}")  # whose window fills, and who acknowledges nothing
        readers = [
            stack.enter_context(
                closing(sqlite3.connect(f"file:{bus.paths.database}?mode=ro", uri=True))
            )
            for _ in range(READERS)
        ]
        sender = stack.enter_context(bus.peer()).attach("sender")
        began = beat = time.monotonic()
        while sent < SENDS:
            pump(sender, sent)
            sent += AT_ONCE
            largest = max(largest, os.stat(bus.paths.database + "-wal").st_size)
            if time.monotonic() > beat:
                beat = time.monotonic() + BEAT_SECONDS
                for peer in (*peers, sender.peer):
                    peer.call("heartbeat")
                for reader in readers:
                    reader.execute("SELECT count(*) FROM channels").fetchone()
        seconds = time.monotonic() - began
    print(f"measured: {sent} sends in {seconds:.0f} s, WAL at most {largest / 2**20:.1f} MiB")
    assert bus.status()["totals"]["accepted"] == sent
    assert largest < WAL_LIMIT_BYTES


def pump(sender: Attached, first: int) -> None:
    """A few sends at once, all answered."""
    params = {"attachment": sender.id, "channel": "general", "content": "x" * 1000}
    asked = [
        sender.peer.request("send", message_id=f"m{n}", **params)
        for n in range(first, first + AT_ONCE)
    ]
    for number in asked:
        sender.peer.result(number)
