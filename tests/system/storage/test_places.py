"""Directories that cannot be written, or are not there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from tests.support.daemon import Daemon
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


def test_no_temporary_directory_is_needed(place: Callable[..., Daemon]) -> None:
    bus = place(send_messages_per_second=10000)
    bus.environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP", "SQLITE_TMPDIR"), "/nowhere/at/all")
    bus.start()
    with bus.peer() as peer:
        sender = peer.attach("sender")
        for n in range(200):
            sender.send("general", f"m{n}", f"word{n} in all of them")
            if not n % 50:
                assert sender.call("search", query=f"word{n}")["results"]
    assert bus.status()["state"] == "ready"
