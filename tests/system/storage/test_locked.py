"""Another program holds the database: reads go on, writes wait or are refused, never both."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from tests.support import audit
from tests.support.daemon import Daemon
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


def outcome(adapter: Adapter, asked: int) -> dict[str, str]:
    """Of a call that was made before."""
    try:
        sent = adapter.structured(adapter.answer(asked, bound=120)["result"])
    except ToolError as error:
        return {"code": error.code, "text": str(error)}
    return {"code": "sent", "text": sent["message_id"]}
