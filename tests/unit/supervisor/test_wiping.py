from __future__ import annotations

import os

import msgspec
import pytest

from agentbus.config import Settings
from agentbus.runtime.paths import locate
from agentbus.supervisor.wiping import finish, wipe


@pytest.fixture
def paths(tmp_path):
    settings = msgspec.structs.replace(Settings(), data_directory=str(tmp_path / "data"))
    paths = locate(settings, {"AGENTBUS_RUNTIME_DIR": str(tmp_path / "run"), "HOME": str(tmp_path)})
    os.makedirs(paths.snapshot_directory)
    os.makedirs(paths.log_directory)
    return paths


def fill(paths):
    files = [
        *(paths.database + end for end in ("", "-wal", "-shm")),
        paths.index,
        os.path.join(paths.snapshot_directory, "dump.rdb"),
        os.path.join(paths.snapshot_directory, "temp-12.rdb"),
    ]
    kept = [paths.data_lock, paths.log("writer")]
    for file in files + kept:
        with open(file, "w") as opened:
            opened.write("x")
    return files, kept


def test_database_index_and_snapshot_go_and_locks_and_logs_stay(paths):
    files, kept = fill(paths)
    assert wipe(paths) == ""
    assert not [file for file in files if os.path.exists(file)]
    assert all(os.path.exists(file) for file in kept)
    assert not os.path.exists(paths.reset_mark)


def test_nothing_to_remove_is_no_error(paths):
    assert wipe(paths) == ""


def test_an_interrupted_reset_is_finished_at_the_next_start(paths):
    files, _ = fill(paths)
    with open(paths.reset_mark, "w"):
        pass
    assert finish(paths) == ""
    assert not [file for file in files if os.path.exists(file)]
    assert not os.path.exists(paths.reset_mark)


def test_without_a_mark_nothing_is_removed_at_start(paths):
    files, _ = fill(paths)
    assert finish(paths) == ""
    assert all(os.path.exists(file) for file in files)


def test_what_cannot_be_removed_is_named_and_the_mark_stays(paths):
    os.mkdir(paths.database)
    reason = wipe(paths)
    assert paths.database in reason
    assert os.path.exists(paths.reset_mark)
