from __future__ import annotations

import os

import pytest

from agentbus.runtime import rendezvous


def test_what_was_left_last_is_found(tmp_path):
    rendezvous.leave(str(tmp_path), os.getpid(), "first")
    rendezvous.leave(str(tmp_path), os.getpid(), "second")
    assert rendezvous.find(str(tmp_path), os.getpid()) == "second"
    assert rendezvous.find(str(tmp_path), os.getppid()) is None


def test_only_the_user_can_look(tmp_path):
    rendezvous.leave(str(tmp_path), os.getpid(), "s")
    directory = tmp_path / "callers"
    assert directory.stat().st_mode & 0o077 == 0
    assert (directory / str(os.getpid())).stat().st_mode & 0o077 == 0


def test_what_processes_left_that_are_gone_is_removed(tmp_path):
    gone = os.fork()
    if not gone:
        os._exit(0)
    rendezvous.leave(str(tmp_path), gone, "old")
    os.waitpid(gone, 0)
    rendezvous.leave(str(tmp_path), os.getpid(), "new")
    assert [path.name for path in (tmp_path / "callers").iterdir()] == [str(os.getpid())]


@pytest.mark.parametrize("content", [b"", b" \n", b"a\nb", b"\x1b[2J"])
def test_what_is_no_name_is_nothing(tmp_path, content):
    rendezvous.leave(str(tmp_path), os.getpid(), "s")
    (tmp_path / "callers" / str(os.getpid())).write_bytes(content)
    assert rendezvous.find(str(tmp_path), os.getpid()) is None
