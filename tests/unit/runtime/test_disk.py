"""Durable names."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentbus.runtime import disk


def test_the_names_of_a_directory_can_be_made_durable(tmp_path: Path) -> None:
    disk.sync_directory(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        disk.sync_directory(str(tmp_path / "none"))
