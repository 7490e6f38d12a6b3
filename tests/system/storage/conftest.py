"""Buses on disks of their own, which may be small, full or read-only."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.support.daemon import Daemon

Place = Callable[..., Daemon]

MIB = 2**20


@pytest.fixture
def place() -> Iterator[Place]:
    """Makes places in which nothing runs yet, with settings of their own."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(Daemon(**settings))


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
        with suppress(OSError), open(self._ballast, "ab", buffering=0) as file:
            while file.write(bytes(1 << 16)):
                pass
        if leave:
            os.truncate(self._ballast, self._ballast.stat().st_size - leave)

    def free(self) -> None:
        """Gives it back."""
        self._ballast.unlink()

    def remount(self, how: str) -> None:
        """Read-only (`ro`), or not (`rw`)."""
        subprocess.run(["mount", "-o", f"remount,{how}", self.path], check=True)


@pytest.fixture
def disk() -> Iterator[Callable[[int], Disk]]:
    """Makes small disks. Skips where nothing may be mounted."""
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("mounting a small file system needs Linux and root")
    with ExitStack() as stack:
        yield lambda mib: stack.enter_context(Disk(mib))
