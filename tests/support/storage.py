"""What goes wrong with the storage of a bus, done to it on purpose."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, wait


def started(bus: Daemon) -> subprocess.CompletedProcess[str]:
    """`agentbus daemon` by hand, until it has said whether it runs."""
    return subprocess.run(
        [sys.executable, "-m", "agentbus", "daemon"],
        env=bus.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(bus: Daemon, code: str) -> str:
    """Why a daemon does not start; it leaves nothing running."""
    done = started(bus)
    assert done.returncode == 1, done.stderr
    *before, reason = done.stderr.splitlines()
    assert all(line.startswith("agentbus is not ready yet: ") for line in before), done.stderr
    assert reason.startswith(f"agentbus: {code}: "), done.stderr
    assert wait(bus.ended)
    return reason


def contents(directory: str) -> dict[str, bytes]:
    """Every file in a directory."""
    return {each.name: each.read_bytes() for each in Path(directory).iterdir() if each.is_file()}


def killed(bus: Daemon) -> None:
    """`kill -9` of the whole daemon at once, so that nothing is put in order."""
    for process in bus.status()["processes"]:
        os.kill(process["pid"], signal.SIGKILL)
    assert wait(bus.ended)


class Disk:
    """A file system of a few MiB in memory."""

    def __init__(self, mib: int) -> None:
        self.path = tempfile.mkdtemp(prefix="ab-disk-", dir="/tmp")
        self._ballast = Path(self.path, "ballast")
        self._mib = mib

    def __enter__(self) -> Disk:
        options = f"size={self._mib}m,mode=700"
        command = ["mount", "-t", "tmpfs", "-o", options, "agentbus-test", self.path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            os.rmdir(self.path)
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", self.path], check=True)
        os.rmdir(self.path)

    @property
    def data(self) -> str:
        """A data directory on it."""
        return os.path.join(self.path, "data")

    def fill(self, *, leave: int = 0) -> None:
        """Takes what is free, up to `leave` bytes."""
        with open(self._ballast, "ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                with suppress(OSError):
                    while file.write(bytes(size)):
                        pass
        if leave:
            os.truncate(self._ballast, self._ballast.stat().st_size - leave)

    def free(self) -> None:
        """Gives it back."""
        self._ballast.unlink()
