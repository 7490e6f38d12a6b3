"""Directories that cannot be written, or are not there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from tests.support import audit
from tests.support.daemon import Daemon
from tests.support.peers import RefusedError
from tests.support.storage import Disk, refused


@pytest.mark.parametrize("part", ["", "logs", "redis"])
def test_a_read_only_directory_is_refused_at_the_start_with_its_name(
    place: Callable[..., Daemon], disk: Callable[[int], Disk], part: str
) -> None:
    bus = place()
    bus.start()
    bus.stop()
    where = os.path.join(bus.paths.data_directory, part).rstrip("/")
    subprocess.run(["mount", "--bind", where, where], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", where], check=True)
        reason = refused(bus, "storage_error")
        assert where in reason
        assert "read-only" in reason
    finally:
        subprocess.run(["umount", "--lazy", where], check=True)
    bus.start()
    assert bus.status()["state"] == "ready"


def test_a_disk_that_turns_read_only_refuses_sends_and_goes_on_when_it_is_writable(
    place: Callable[..., Daemon], disk: Callable[[int], Disk]
) -> None:
    small = disk(32)
    bus = place(data_directory=small.data, redis_budget_mib=64, sqlite_budget_mib=64)
    bus.start()
    with bus.peer() as peer:
        sender = peer.attach("sender")
        sender.send("general", "before", "x")
        small.remount("ro")
        with pytest.raises(RefusedError) as refusal:
            sender.send("general", "during", "x")
        assert refusal.value.code == "storage_error"
        shown = sender.call("history", channel="general")["messages"]
        assert [each["message_id"] for each in shown] == ["before"]
        small.remount("rw")
        sender.send("general", "after", "x")
    bus.stop()
    assert audit.stored(bus.paths.database) == ["before", "after"]


def test_no_temporary_directory_is_needed(place: Callable[..., Daemon]) -> None:
    bus = place()
    bus.environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP", "SQLITE_TMPDIR"), "/nowhere/at/all")
    bus.start()
    with bus.peer() as peer:
        sender = peer.attach("sender")
        for n in range(200):
            sender.send("general", f"m{n}", f"word{n} in all of them")
            if not n % 50:
                assert sender.call("search", query=f"word{n}")["results"]
    assert bus.status()["state"] == "ready"
