from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentbus.runtime import files


def test_a_regular_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 2048)
    assert files.content(str(path), 2048) == b"x" * 2048
    with pytest.raises(OSError, match="more than 1 KiB"):
        files.content(str(path), 1024)


def test_a_link_to_one_is_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    assert files.content(str(tmp_path / "link"), 9) == b"x"


def test_nothing_else_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), str(tmp_path), os.devnull):
        with pytest.raises(OSError, match="not a regular file"):
            files.content(path, 9)


def test_what_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.content(str(tmp_path / "none"), 9)
