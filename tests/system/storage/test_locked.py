"""Another program holds the database: reads go on, writes wait or are refused, never both."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from agentbus.sqlite import WAL_RESTART_BYTES
from tests.support import audit
from tests.support.daemon import Daemon, wait
from tests.support.peers import Attached
from tests.support.stdio import Adapter, ToolError

LONG = 60.0
"""Seconds: longer than anybody waits for an answer."""

TEN = 10.0


@contextmanager
def held(path: str, statement: str) -> Iterator[sqlite3.Connection]:
    """A lock of another program's."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(statement)
        yield other
        other.execute("COMMIT")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seconds", [TEN, LONG])
def test_row_4_a_send_under_a_foreign_lock_succeeds_with_a_row_or_fails_without(
    place: Callable[..., Daemon], seconds: float
) -> None:
    bus = place()
    told: dict[str, str] = {}
    with Adapter(bus.environment) as sender, Adapter(bus.environment) as reader:
        first = sender.call("send", channel="general", content="before")["message_id"]
        reader.call("history", channel="general")
        with held(bus.paths.database, "BEGIN IMMEDIATE"):
            began = time.monotonic()
            message = {"channel": "general", "content": "during", "message_id": "the-one"}
            asked = sender.request("tools/call", name="send", arguments=message)
            waiting = threading.Thread(target=lambda: told.update(outcome(sender, asked)))
            waiting.start()
            while time.monotonic() < began + seconds:
                shown = reader.call("history", channel="general")["messages"]
                assert [each["message_id"] for each in shown] == [first]
                assert bus.status()["state"] == "ready"
                waiting.join(1.0)
                if told and seconds == LONG:
                    break
            answered = time.monotonic() - began
            refused = dict(told)
            if refused:
                assert refused["code"] == "storage_error"
                assert "locked by another program" in refused["text"]
                print(f"refused after: {answered:.1f} s")
                while time.monotonic() < began + seconds:
                    reader.call("history", channel="general")
                    time.sleep(0.5)
        freed = time.monotonic()
        waiting.join(30)
        if refused:
            shown = sender.call("history", channel="general")["messages"]
            assert [each["message_id"] for each in shown] == [first]
        again = sender.call("send", **message)
        print(f"measured: {time.monotonic() - freed:.3f} s")
        assert again["duplicate"] is not bool(refused)
    bus.stop()
    assert audit.stored(bus.paths.database) == [first, "the-one"]


@pytest.mark.timeout(240)
def test_a_foreign_reader_holds_up_nobody_for_a_minute_and_the_wal_is_short_again_afterwards(
    place: Callable[..., Daemon],
) -> None:
    bus = place(send_messages_per_second=10_000, send_kib_per_second=65_536)
    bus.start()
    wal = bus.paths.database + "-wal"
    taken: list[float] = []
    with bus.peer() as peer, Adapter(bus.environment) as reader:
        sender = peer.attach("sender")
        reader.call("recv", wait_seconds=0)
        with held(bus.paths.database, "BEGIN") as other:
            assert other.execute("SELECT count(*) FROM messages").fetchone() == (0,)
            end = time.monotonic() + LONG
            while time.monotonic() < end:
                began = time.monotonic()
                for number in [large(sender, len(taken), each) for each in range(10)]:
                    peer.result(number)
                taken.append(time.monotonic() - began)
                while shown := reader.call("recv", wait_seconds=0, max_messages=50)["messages"]:
                    assert len(shown[0]["content"]) == 20_000
                peer.call("heartbeat")
                time.sleep(0.4)
            assert other.execute("SELECT count(*) FROM messages").fetchone() == (0,)
            assert os.stat(wal).st_size > WAL_RESTART_BYTES
        sender.send("general", "after", "after")
        assert wait(lambda: os.stat(wal).st_size <= WAL_RESTART_BYTES)
        totals = bus.status()["totals"]
    print(f"measured: {max(taken):.2f} s for ten sends at most, {len(taken)} times")
    assert totals["accepted"] == 10 * len(taken) + 1
    assert max(taken) < TEN


def large(sender: Attached, turn: int, number: int) -> int:
    """A send of 20 KB is asked for."""
    params = {"attachment": sender.id, "channel": "general", "message_id": f"{turn}-{number}"}
    return sender.peer.request("send", content="x" * 20_000, **params)


def outcome(adapter: Adapter, asked: int) -> dict[str, str]:
    """Of a call that was made before."""
    try:
        sent = adapter.structured(adapter.answer(asked, bound=120)["result"])
    except ToolError as error:
        return {"code": error.code, "text": str(error)}
    return {"code": "sent", "text": sent["message_id"]}
