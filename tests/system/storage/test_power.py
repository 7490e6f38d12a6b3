"""Power cannot be cut here: what is looked at is that the kernel was asked to sync, and when."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, wait

CALLS = "trace=fsync,fdatasync,write,writev,sendmsg,sendto,pwrite64"
MESSAGE = "to-be-kept"
SENDS = 5


@pytest.mark.skipif(shutil.which("strace") is None, reason="there is no strace")
def test_a_send_is_answered_after_the_wal_was_synced_and_not_before(
    place: Callable[..., Daemon], tmp_path: Path
) -> None:
    bus = place()
    bus.start()
    trace = tmp_path / "trace"
    with bus.peer() as peer:
        sender = peer.attach("sender")
        sender.send("general", "first", "x")
        command = ["strace", "-y", "-s", "4096", "-e", CALLS, "-o", str(trace)]
        tracer = subprocess.Popen(
            [*command, "-p", str(bus.pid("writer"))], stderr=subprocess.PIPE, text=True
        )
        assert tracer.stderr is not None
        attached = tracer.stderr.readline()
        if "attached" not in attached:
            tracer.wait(30)
            pytest.skip(f"no process can be traced here: {attached.strip()}")
        for number in range(SENDS):
            sender.send("general", f"{MESSAGE}-{number}", "x")
        assert wait(lambda: trace.read_text().count("sync(") >= SENDS)
        tracer.terminate()
        tracer.communicate(timeout=30)
    lines = trace.read_text().splitlines()
    for number in range(SENDS):
        stored = first(lines, f"{MESSAGE}-{number}", "bus.sqlite3-wal")
        answered = first(lines, f"{MESSAGE}-{number}", "socket:")
        synced = [
            at
            for at, line in enumerate(lines)
            if "sync(" in line and "bus.sqlite3-wal" in line and stored < at
        ]
        assert stored < synced[0] < answered


def first(lines: list[str], text: str, file: str) -> int:
    """Of the calls that write a text to a file."""
    return next(at for at, line in enumerate(lines) if text in line and file in line)
