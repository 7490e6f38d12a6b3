"""Who may start a daemon, and what the others learn of it."""

from __future__ import annotations

import os
import stat

import msgspec
import pytest

from agentbus.client import attempts
from agentbus.config import load
from agentbus.supervisor.report import Report


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "start.lock")


def test_only_one_may_start_a_daemon_and_the_file_is_ours_alone(path):
    lock = attempts.take(path)
    assert lock is not None
    assert attempts.take(path) is None
    os.close(lock)
    again = attempts.take(path)
    assert again is not None
    os.close(again)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_lock_is_kept_until_the_daemon_has_reported(path):
    lock = attempts.take(path)
    attempts.begin(lock, "k")
    report = Report(os.dup(lock))  # as the daemon that inherits it does
    os.close(lock)
    assert attempts.take(path) is None
    assert attempts.outcome(attempts.look(path)) is None
    report.ready(7)
    assert attempts.outcome(attempts.look(path)) == ("k", b'{"ready":true,"pid":7}\n')
    free = attempts.take(path)
    assert free is not None
    os.close(free)


def test_each_attempt_begins_anew_and_is_told_from_the_one_before(path):
    seen = set()
    for _ in range(3):
        lock = attempts.take(path)
        attempts.begin(lock, "k")
        Report(lock).ready(7)
        seen.add(attempts.look(path))
    assert len(seen) == 3
    assert all(attempts.outcome(each) == ("k", b'{"ready":true,"pid":7}\n') for each in seen)


@pytest.mark.parametrize("content", [b"", b"x", b"\n\n", b"[]\n{}\n", b'{"kind":"k"}\n{"ready"'])
def test_what_is_no_outcome_is_none(content):
    assert attempts.outcome(content) is None


def test_a_file_that_cannot_be_read_says_nothing(path):
    assert attempts.look(path) == b""
    os.mkdir(path)
    assert attempts.look(path) == b""
    with pytest.raises(OSError, match="directory"):
        attempts.take(path)


def test_a_link_is_not_followed(path, tmp_path):
    os.symlink(tmp_path / "other", path)
    with pytest.raises(OSError, match="symbolic"):
        attempts.take(path)
    assert not (tmp_path / "other").exists()


def test_attempts_are_alike_that_can_only_fail_alike(tmp_path):
    file = tmp_path / "config.json"
    file.write_text("{}")
    configuration = load(str(file))
    environ = {"PATH": "/bin", "HOME": "/h", "TERM_SESSION_ID": "1"}
    kind = attempts.kind(configuration, environ)
    assert attempts.kind(configuration, {**environ, "TERM_SESSION_ID": "2"}) == kind
    assert attempts.kind(configuration, {**environ, "PATH": "/usr/bin"}) != kind
    assert attempts.kind(configuration, {**environ, "AGENTBUS_TEST": "{}"}) != kind
    settings = msgspec.structs.replace(configuration.settings, recv_default_count=7)
    other = msgspec.structs.replace(configuration, settings=settings)
    assert attempts.kind(other, environ) != kind
