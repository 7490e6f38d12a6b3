"""Row 8: many who send at once."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from contextlib import closing

import msgspec
import pytest

from tests.support.daemon import Daemon
from tests.support.stdio import Adapter

PROCESSES = 8
SENDS = 500


def send_all(bus: Daemon, number: int, barrier: threading.Barrier, failures: list[object]) -> None:
    name = f"row-8-{number}"
    given = ("--application", "clients", "--session", name, "--agent", name)
    try:
        with Adapter(bus.environment, *given) as adapter:
            adapter.call("whoami")
            barrier.wait(60)
            asked = []
            for count in range(SENDS):
                arguments = {"channel": "row-8", "content": str(count)}
                asked.append(adapter.request("tools/call", name="send", arguments=arguments))
                if len(asked) >= 16:  # a client may send the next request before the answer
                    adapter.structured(adapter.answer(asked.pop(0))["result"])
            for each in asked:
                adapter.structured(adapter.answer(each)["result"])
    except BaseException as error:  # noqa: BLE001 - the test tells it
        failures.append(error)
        barrier.abort()


@pytest.mark.timeout(240)
def test_row_8_eight_processes_that_send_at_once_lose_nothing_and_keep_their_order(
    bus: Daemon,
) -> None:
    with bus.peer() as peer:
        reader = peer.attach("row-8-reader")
        reader.call("channel.create", name="row-8", kind="ordinary")
        reader.call("subscribe", channel="row-8")
        barrier, failures = threading.Barrier(PROCESSES), []
        threads = [
            threading.Thread(target=send_all, args=(bus, number, barrier, failures))
            for number in range(PROCESSES)
        ]
        for thread in threads:
            thread.start()
        received = reader.receive(PROCESSES * SENDS)
        for thread in threads:
            thread.join(60)
        assert failures == []
    with closing(sqlite3.connect(f"file:{bus.paths.database}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT m.seq, m.envelope FROM messages m JOIN channels c ON c.id = m.channel_id "
            "WHERE c.name = 'row-8' ORDER BY m.seq"
        ).fetchall()
    assert [seq for seq, _ in rows] == list(range(1, PROCESSES * SENDS + 1))
    stored = [msgspec.json.decode(envelope) for _, envelope in rows]
    for messages in (stored, received):
        by_sender: dict[str, list[str]] = defaultdict(list)
        for message in messages:
            by_sender[message["session"]].append(message["content"])
        assert len(by_sender) == PROCESSES
        assert set(map(tuple, by_sender.values())) == {tuple(str(n) for n in range(SENDS))}
