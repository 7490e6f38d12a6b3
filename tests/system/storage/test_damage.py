"""Files that are not what was written: told, left as they are, and gone on from if possible."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from agentbus.sqlite import PAGE_BYTES
from agentbus.store import schema
from tests.support import audit
from tests.support.daemon import Daemon, wait
from tests.support.peers import RefusedError
from tests.support.stdio import Adapter
from tests.support.storage import contents, killed, refused, started

COUNT = 60
FAST = {"send_messages_per_second": 10000, "send_kib_per_second": 65536}


def sent(bus: Daemon, first: int = 0, count: int = COUNT) -> list[str]:
    """Sends messages of a few pages; their ids."""
    ids = [f"m{n}" for n in range(first, first + count)]
    with bus.peer() as peer:
        sender = peer.attach("sender")
        for message_id in ids:
            sender.send("general", message_id, message_id + " x" * 4000)
    return ids


def shown(bus: Daemon) -> list[str]:
    """What history shows: all there is."""
    ids: list[str] = []
    with bus.peer() as peer:
        reader = peer.attach("reader")
        while True:
            page = reader.call("history", channel="general", after=len(ids), limit=100)
            ids += [each["message_id"] for each in page["messages"]]
            if not page["more"]:
                return ids


@pytest.mark.parametrize("tail", ["cut", "garbage", "zeros", "flipped"])
def test_of_a_torn_wal_the_whole_commits_before_the_tear_survive(
    place: Callable[..., Daemon], tail: str
) -> None:
    bus = place(**FAST)
    bus.start()
    ids = sent(bus)
    killed(bus)
    wal = bus.paths.database + "-wal"
    size = os.stat(wal).st_size
    frame = 24 + PAGE_BYTES
    place_of_tear = 32 + (size // frame) // 2 * frame + 1000
    with open(wal, "r+b") as file:
        if tail == "cut":
            file.truncate(place_of_tear)
        elif tail == "flipped":
            file.seek(place_of_tear)
            (byte,) = file.read(1)
            file.seek(place_of_tear)
            file.write(bytes([byte ^ 1]))
        else:
            file.seek(place_of_tear)
            rest = size - place_of_tear
            file.write(bytes(rest) if tail == "zeros" else os.urandom(rest))
    began = time.monotonic()
    bus.start()
    left = shown(bus)
    print(f"measured: {time.monotonic() - began:.3f} s")
    assert 0 < len(left) < COUNT
    assert left == ids[: len(left)]
    again = sent(bus, first=COUNT, count=20)
    with bus.peer() as peer:  # what was lost can be sent again, as if for the first time
        lost = peer.attach("sender").send("general", ids[-1], ids[-1] + " x" * 4000)
        assert not lost["duplicate"]
    expected = [*left, *again, ids[-1]]
    assert shown(bus) == expected
    bus.stop()
    assert audit.stored(bus.paths.database) == expected


def test_a_deleted_wal_is_a_loss_that_is_told(place: Callable[..., Daemon]) -> None:
    bus = place(**FAST)
    bus.start()
    ids = sent(bus)
    bus.wait_until(lambda status: bool(status["index"]) and status["index"]["lag_commits"] == 0)
    newest = bus.status()["sqlite"]["commit_id"]
    killed(bus)
    os.unlink(bus.paths.database + "-wal")
    bus.start()
    left = bus.status()["sqlite"]["commit_id"]
    assert left < newest
    status = bus.wait_until(lambda status: "has lost" in str(status["warnings"]))
    (warning,) = [each for each in status["warnings"] if "has lost" in each]
    (line,) = [
        line
        for line in Path(bus.paths.log("indexer")).read_text().splitlines()
        if "action=commits_lost" in line
    ]
    (missing,) = [int(part[8:]) for part in line.split() if part.startswith("missing=")]
    assert 0 < missing <= newest
    assert f"has lost at least its last {missing} commits" in warning
    assert sent(bus, first=COUNT, count=2)
    assert len(shown(bus)) < len(ids) + 2


@pytest.mark.parametrize("loss", ["deleted", "emptied", "emptied beside its wal"])
def test_a_database_that_is_gone_is_not_silently_another_bus(
    place: Callable[..., Daemon], loss: str
) -> None:
    bus = place(**FAST)
    bus.start()
    sent(bus)
    saved = bus.paths.database + ".saved"
    if loss == "emptied beside its wal":
        killed(bus)
    else:
        bus.stop()
        for ending in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(bus.paths.database + ending)
    Path(saved).write_bytes(Path(bus.paths.database).read_bytes())
    if loss == "deleted":
        os.unlink(bus.paths.database)
    else:
        os.truncate(bus.paths.database, 0)
    before = contents(bus.paths.data_directory)
    reason = refused(bus, "database_damaged")
    assert "put the file or a backup back" in reason
    assert "agentbus reset" in reason
    after = contents(bus.paths.data_directory)
    assert {name: after.get(name) for name in before if name.startswith("bus.")} == {
        name: content for name, content in before.items() if name.startswith("bus.")
    }
    os.rename(saved, bus.paths.database)
    bus.start()
    assert len(shown(bus)) == COUNT


def test_a_reset_begins_anew_where_a_database_was_lost(place: Callable[..., Daemon]) -> None:
    bus = place()
    bus.start()
    bus.stop()
    os.truncate(bus.paths.database, 0)
    refused(bus, "database_damaged")
    reset(bus)
    bus.start()
    assert shown(bus) == []


def reset(bus: Daemon) -> None:
    command = [sys.executable, "-m", "agentbus", "reset", "--yes"]
    done = subprocess.run(
        command, env=bus.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_schema_of_the_future_is_refused_and_not_touched(place: Callable[..., Daemon]) -> None:
    bus = place()
    bus.start()
    sent(bus, count=3)
    bus.stop()
    with closing(sqlite3.connect(bus.paths.database)) as connection:
        connection.execute(f"PRAGMA user_version = {schema.SCHEMA + 1}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = Path(bus.paths.database).read_bytes()
    reason = refused(bus, "version_mismatch")
    assert "update agentbus" in reason
    with Adapter(bus.environment) as adapter:
        answer = adapter.ask("tools/call", name="whoami", arguments={})
        assert answer["structuredContent"]["error"]["code"] == "version_mismatch"
    assert Path(bus.paths.database).read_bytes() == before


def pages_of(path: str, name: str) -> list[int]:
    """The pages of a table or an index, by number; the root first."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        try:
            rows = connection.execute(
                "SELECT pageno FROM dbstat WHERE name = ? ORDER BY path", (name,)
            ).fetchall()
        except sqlite3.OperationalError:
            rows = connection.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)
            ).fetchall()
    return [number for (number,) in rows]


def spoil(path: str, pages: list[int]) -> None:
    """Makes nonsense of pages."""
    with open(path, "r+b") as file:
        for number in pages:
            file.seek((number - 1) * PAGE_BYTES)
            file.write(b"\xff" * PAGE_BYTES)


@pytest.mark.parametrize("part", ["meta", "channels", "messages"])
def test_a_damaged_page_that_is_met_at_the_start_is_told_and_nothing_is_thrown_away(
    place: Callable[..., Daemon], part: str
) -> None:
    bus = place(**FAST)
    bus.start()
    sent(bus)
    bus.stop()
    for name in os.listdir(bus.paths.snapshot_directory):
        os.unlink(os.path.join(bus.paths.snapshot_directory, name))  # so that all is read
    page = pages_of(bus.paths.database, part)[0]
    spoil(bus.paths.database, [page])
    before = pages(bus.paths.database)
    reason = told(bus)
    assert bus.paths.database in reason
    assert "agentbus reset" in reason
    after = pages(bus.paths.database)
    changed = [
        number
        for number, (one, other) in enumerate(zip(before, after, strict=True), 1)
        if one != other
    ]
    assert page not in changed
    # A gateway may have been given its number before the damage was met.
    assert len(changed) <= 4


def pages(path: str) -> list[bytes]:
    """Of a database file."""
    content = Path(path).read_bytes()
    return [content[at : at + PAGE_BYTES] for at in range(0, len(content), PAGE_BYTES)]


def told(bus: Daemon) -> str:
    """Why a daemon does not start, or does not stay."""
    done = started(bus)
    if done.returncode:
        assert "\nagentbus: database_damaged: " in f"\n{done.stderr}"
        return done.stderr
    with pytest.raises(RefusedError) as refusal, bus.peer() as peer:
        peer.attach("sender").send("general", "new", "x")
    assert refusal.value.code == "database_damaged"
    assert wait(bus.ended)
    return str(refusal.value)
