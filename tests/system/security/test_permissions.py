"""Everything the bus makes is its user's alone, whatever umask it was started with."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, wait
from tests.support.stdio import Adapter
from tests.support.storage import refused

STRANGER = 65534

WHILE_IT_RUNS = {"bus.sqlite3", "bus.sqlite3-wal", "bus.sqlite3-shm", "search.sqlite3", "bus.sock"}


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Nothing is kept from anybody by default."""
    before = os.umask(0)
    yield
    os.umask(before)


def found(directory: str) -> dict[str, int]:
    """The modes of a directory and of all there is in it, by path."""
    top = Path(directory)
    return {str(each): each.lstat().st_mode for each in [top, *top.rglob("*")]}


@pytest.mark.usefixtures("open_umask")
def test_no_file_directory_or_socket_is_open_to_others() -> None:
    with Daemon() as bus:
        seen: dict[str, int] = {}

        def made() -> set[str]:
            for place in (bus.paths.data_directory, bus.paths.runtime_directory):
                seen.update(found(place))
            return {os.path.basename(path) for path in seen}

        with Adapter(bus.environment) as adapter:  # which starts the daemon, with its umask
            adapter.call("send", channel="general", content="something")
            assert wait(lambda: made() >= WHILE_IT_RUNS)
        bus.stop()
        assert made() >= {
            "bus.sqlite3.instance",
            "daemon.lock",
            "data.lock",
            "dump.rdb",
            "redis.lock",
            "supervisor.log",
            "redis.log",
        }
        assert [path for path in seen if "/redis-" in path and path.endswith(".sock")]
        wrong = {path: oct(mode) for path, mode in seen.items() if stat.S_IMODE(mode) & 0o077}
        assert wrong == {}
        files = [path for path, mode in seen.items() if stat.S_ISREG(mode) and mode & 0o100]
        assert files == []


@pytest.mark.parametrize(
    ("which", "fault"),
    [
        ("runtime", "symlinked"),
        ("runtime", "foreign"),
        ("runtime", "open"),
        ("data", "foreign"),
        ("data", "open"),
    ],
)
def test_a_directory_that_is_not_ours_alone_is_refused(which: str, fault: str) -> None:
    with Daemon() as bus:
        path = bus.paths.runtime_directory if which == "runtime" else bus.paths.data_directory
        if fault == "symlinked":
            os.mkdir(f"{path}.real", 0o700)
            os.symlink(f"{path}.real", path)
        else:
            os.mkdir(path, 0o700)
        if fault == "open":
            os.chmod(path, 0o770)
        elif fault == "foreign":
            if os.getuid() != 0:
                pytest.skip("only root can give a directory away")
            os.chown(path, STRANGER, STRANGER)
        reason = refused(bus, "unsafe_permissions")
        assert path in reason, reason
        assert os.listdir(path) == []
        if fault == "foreign":
            os.chown(path, os.getuid(), os.getgid())
