"""What a file system's errors mean."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from agentbus.errors import StorageFailed
from agentbus.runtime import disk


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (errno.ENOSPC, "is full; free some space"),
        (errno.EDQUOT, "full for this user; free some space"),
        (errno.EROFS, "read-only; make it writable"),
        (errno.EIO, "has failed; check it"),
    ],
)
def test_a_disk_that_cannot_store_is_told_with_the_path_and_the_cure(
    code: int, meaning: str
) -> None:
    refusal = disk.refusal("/d/file", OSError(code, os.strerror(code)))
    assert isinstance(refusal, StorageFailed)
    assert refusal.message.startswith("/d/file cannot be written: ")
    assert meaning in refusal.message


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "no"), OSError("odd"), OSError()])
def test_another_reason_is_not_the_disks(error: OSError) -> None:
    assert disk.refusal("/d/file", error) is None


def test_the_names_of_a_directory_can_be_made_durable(tmp_path: Path) -> None:
    disk.sync_directory(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        disk.sync_directory(str(tmp_path / "none"))
