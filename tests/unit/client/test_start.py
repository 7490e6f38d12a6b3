"""What a starting daemon says, and what it is told of its surroundings."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from agentbus.client import start
from agentbus.client.launch import clean, surroundings
from agentbus.client.start import Report as Told
from agentbus.client.start import begin, understand
from agentbus.config import load
from agentbus.errors import RedisMissing, Unavailable, UnsafePermissions
from agentbus.runtime.owners import Owner
from agentbus.runtime.paths import locate, prepare_runtime
from agentbus.supervisor import listener, locks
from agentbus.supervisor.report import Report
from agentbus.wire.error_codes import to_data


def test_a_ready_daemon_tells_its_pid():
    assert understand(b'{"ready":true,"pid":7}\n') == Told(ready=True, pid=7)


def test_a_daemon_that_cannot_start_tells_its_error():
    told = understand(
        b'{"error":{"code":"redis_missing","message":"install one","retryable":false}}\n'
    )
    assert isinstance(told, RedisMissing)
    assert told.message == "install one"


@pytest.mark.parametrize("told", [b"", b"\n", b"nonsense\n", b"[]\n", b'{"ready":true'])
def test_a_daemon_that_dies_or_mumbles_is_unavailable(told):
    assert isinstance(understand(told), Unavailable)


def test_a_daemon_that_serves_all_harnesses_inherits_none_of_their_variables():
    environ = {
        "HOME": "/h",
        "PATH": "/bin",
        "AGENTBUS_RUNTIME_DIR": "/r",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "x",
        "CODEX_HOME": "x",
        "GEMINI_SESSION_ID": "x",
        "OPENCODE_PID": "x",
        "MCP_SERVER": "x",
        "ANTHROPIC_API_KEY": "x",
    }
    assert set(clean(environ)) == {"HOME", "PATH", "AGENTBUS_RUNTIME_DIR"}


@pytest.mark.parametrize("given", ["run/bus", "/r", "~/bus"])
def test_a_daemon_and_its_starter_use_the_same_place(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "config.json"
    file.write_text("{}")
    wanted = {"run/bus": str(tmp_path / "run/bus"), "/r": "/r", "~/bus": "/h/bus"}[given]
    environ = {"HOME": "/h", "AGENTBUS_RUNTIME_DIR": given}
    assert surroundings(load(str(file)), environ) == {"HOME": "/h", "AGENTBUS_RUNTIME_DIR": wanted}


def test_without_the_variable_none_is_made_up(tmp_path):
    file = tmp_path / "config.json"
    file.write_text("{}")
    assert surroundings(load(str(file)), {"HOME": "/h"}) == {"HOME": "/h"}


@pytest.fixture
def place():
    """A configuration with its environment and paths, whose daemon must not be launched."""
    directory = tempfile.mkdtemp(prefix="ab-", dir="/tmp")
    file = Path(directory) / "config.json"
    file.write_text(f'{{"data_directory": "{directory}/data"}}')
    environ = {"HOME": directory, "AGENTBUS_RUNTIME_DIR": f"{directory}/run"}
    configuration = load(str(file))
    yield configuration, environ, locate(configuration.settings, environ)
    shutil.rmtree(directory)


@pytest.fixture
def launched(monkeypatch):
    """The pipes to the starters of what was launched."""
    pipes = []

    class Helper:
        def wait(self):
            pass

    def launch(configuration, environ, others):
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        pipes.append(Report(writing, *map(os.dup, others)))
        return reading, Helper()

    monkeypatch.setattr(start, "launch", launch)
    yield pipes
    for each in pipes:
        each.close()


def test_one_of_many_launches_and_all_learn_that_it_is_ready(place, launched):
    configuration, environ, _ = place
    many = [begin(configuration, environ) for _ in range(20)]
    for _ in range(3):
        assert [each.read() for each in many] == [None] * 20
    assert len(launched) == 1
    launched[0].ready(7)
    assert [each.read() for each in many] == [Told(ready=True, pid=7)] * 20
    assert len(launched) == 1


def test_an_error_is_told_to_all_who_waited_for_it_and_to_nobody_later(place, launched):
    configuration, environ, _ = place
    many = [begin(configuration, environ) for _ in range(3)]
    assert [each.read() for each in many] == [None] * 3
    launched[0].failure(to_data(RedisMissing("install one")))
    assert [str(each.read()) for each in many] == ["install one"] * 3
    later = begin(configuration, environ)
    assert later.read() is None
    assert len(launched) == 2
    later.close()


def test_an_error_of_another_kind_of_attempt_is_not_believed(place, launched):
    configuration, environ, _ = place
    one = begin(configuration, environ)
    other = begin(configuration, {**environ, "PATH": "/where/there/is/a/server"})
    assert (one.read(), other.read()) == (None, None)
    launched[0].failure(to_data(RedisMissing("install one")))
    assert isinstance(one.read(), RedisMissing)
    assert other.read() is None
    launched[1].ready(8)
    assert other.read() == Told(ready=True, pid=8)


def test_a_daemon_that_dies_without_a_word_has_a_successor(place, launched):
    configuration, environ, _ = place
    one, other = begin(configuration, environ), begin(configuration, environ)
    assert (one.read(), other.read()) == (None, None)
    launched[0].close()
    assert isinstance(one.read(), Unavailable)
    assert other.read() is None
    launched[1].ready(8)
    assert other.read() == Told(ready=True, pid=8)


def test_a_starter_that_is_gone_hinders_nobody(place, launched):
    configuration, environ, _ = place
    one, other = begin(configuration, environ), begin(configuration, environ)
    assert (one.read(), other.read()) == (None, None)
    one.close()
    assert other.read() is None
    launched[0].ready(7)
    assert other.read() == Told(ready=True, pid=7)
    assert len(launched) == 1


def test_an_attempt_that_stands_still_is_not_waited_for_for_ever(place, launched, monkeypatch):
    configuration, environ, _ = place
    one, other = begin(configuration, environ), begin(configuration, environ)
    assert (one.read(), other.read()) == (None, None)
    monkeypatch.setattr(start, "SHARED_SECONDS", 0.0)
    assert other.read() is None
    launched[1].ready(8)
    assert (one.read(), other.read()) == (None, Told(ready=True, pid=8))
    one.close()


def test_a_removed_runtime_directory_is_made_again(place, launched):
    configuration, environ, paths = place
    one, other = begin(configuration, environ), begin(configuration, environ)
    assert one.read() is None
    shutil.rmtree(paths.runtime_directory)
    assert other.read() is None
    assert len(launched) == 2
    launched[1].ready(8)
    assert (one.read(), other.read()) == (None, Told(ready=True, pid=8))
    one.close()


def test_a_lock_that_cannot_be_had_keeps_nobody_from_starting(place, launched):
    configuration, environ, paths = place
    os.makedirs(paths.start_lock)
    os.chmod(paths.runtime_directory, 0o700)
    many = [begin(configuration, environ) for _ in range(2)]
    assert [each.read() for each in many] == [None] * 2
    assert len(launched) == 2
    for number, each in enumerate(many):
        launched[number].ready(number)
        assert each.read() == Told(ready=True, pid=number)


def test_a_runtime_directory_that_is_not_ours_alone_is_told_at_once(place, launched):
    configuration, environ, paths = place
    os.mkdir(paths.runtime_directory)
    os.chmod(paths.runtime_directory, 0o755)
    told = begin(configuration, environ).read()
    assert isinstance(told, UnsafePermissions)
    assert paths.runtime_directory in told.message
    assert (launched, os.listdir(paths.runtime_directory)) == ([], [])


def test_a_daemon_that_lives_is_waited_for_until_it_listens(place, launched):
    configuration, environ, paths = place
    prepare_runtime(paths)
    lock = locks.take(paths.lock)
    lock.write(Owner(7, paths.socket, paths.runtime_directory))
    starting = begin(configuration, environ)
    assert starting.read() is None
    listening = listener.listen(paths.socket)
    assert starting.read() == Told(ready=True, pid=7)
    listening.close()
    lock.close()
    assert launched == []


@pytest.mark.parametrize("ends", [True, False])
def test_a_daemon_that_ends_or_never_listens_gets_a_successor(place, launched, monkeypatch, ends):
    configuration, environ, paths = place
    prepare_runtime(paths)
    lock = locks.take(paths.lock)
    starting = begin(configuration, environ)
    assert starting.read() is None
    assert launched == []
    if ends:
        lock.close()
    else:
        monkeypatch.setattr(start, "LIVING_SECONDS", 0.0)
    assert starting.read() is None
    assert len(launched) == 1
    starting.close()
