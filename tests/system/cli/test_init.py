"""`agentbus init`, as a person runs it, with a home of the test's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import BOUND, Daemon

AGENTBUS = [sys.executable, "-m", "agentbus"]


@pytest.fixture
def bus() -> Iterator[Daemon]:
    """A place in which nothing runs yet."""
    with Daemon() as daemon:
        yield daemon


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """One in which Codex was used."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text('model = "x"\n')
    (tmp_path / "work/.git").mkdir(parents=True)
    return tmp_path


def init(bus: Daemon, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**bus.environment, "HOME": str(home), "PATH": "/nowhere"}
    return subprocess.run(
        [*AGENTBUS, "init", *arguments],
        env=environment,
        cwd=home / "work",
        capture_output=True,
        text=True,
        timeout=BOUND * 2,
        check=False,
    )


def test_harnesses_are_connected_shown_and_disconnected(bus, home):
    config = home / ".codex/config.toml"
    shown = init(bus, home, "--global", "--dry-run")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "+[mcp_servers.agentbus]" in shown.stdout
    assert config.read_text() == 'model = "x"\n'

    done = init(bus, home, "--global")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"codex: {config} changed\n" in done.stdout
    assert "claude-code" not in done.stdout
    assert "/hooks" in done.stdout
    assert init(bus, home, "--global").stdout == "codex: is connected\n"

    removed = init(bus, home, "--global", "--remove")
    assert (removed.returncode, removed.stderr) == (0, "")
    assert config.read_text() == 'model = "x"\n'
    assert [path.name for path in (home / ".codex").iterdir()] == ["config.toml"]
    assert bus.ended()


def test_one_that_cannot_be_connected_is_told_and_the_others_are(bus, home):
    (home / ".claude.json").write_text("{")
    done = init(bus, home, "--global")
    assert done.returncode == 1
    assert done.stderr.startswith("agentbus: config_invalid: claude-code: ")
    assert "agentbus" in (home / ".codex/config.toml").read_text()
    assert (home / ".claude.json").read_text() == "{"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--global", "--harness", "emacs"], "invalid_argument"),
        (["--harness", "codex"], "invalid_argument"),
        (["--global", "--agent", "Sam"], "invalid_argument"),
    ],
)
def test_what_does_not_go_together_is_told(bus, home, arguments, code):
    done = init(bus, home, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"agentbus: {code}: ")


def test_a_repository_gets_its_file_and_its_channels(bus, home):
    file = home / "work/.agentbus.json"
    shown = init(bus, home, "--dry-run", "--agent", "Sam")
    assert '+  "agent": "Sam",' in shown.stdout
    assert bus.ended()
    assert not file.exists()

    done = init(bus, home)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(file.read_text())
    assert document["channels"] == ["general", "general/work", "memory"]
    channels = {each["name"]: each["kind"] for each in bus.status()["channels"]}
    assert channels == {"general": "ordinary", "general/work": "ordinary", "memory": "memory"}
    with bus.peer() as peer:
        facts = {"repository": "work", "repository_root": str(home / "work")}
        told = peer.call("register", application="tests", session="s", **facts)
        assert told["agent"] == document["agent"]
    assert init(bus, home).stdout.endswith("is connected\n")

    again = init(bus, home, "--agent", "Sam", "--channel", "general", "--channel", "plans")
    assert again.returncode == 0
    assert json.loads(file.read_text()) == {"agent": "Sam", "channels": ["general", "plans"]}
    assert init(bus, home, "--remove").returncode == 0
    assert not file.exists()


def test_a_file_that_is_not_as_it_should_be_is_told(bus, home):
    (home / "work/.agentbus.json").write_text('{"channel": 1}')
    done = init(bus, home)
    assert done.returncode == 1
    assert done.stderr.startswith("agentbus: config_invalid: ")
    assert bus.ended()


def test_several_at_once_do_what_one_does(bus, home):
    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*AGENTBUS, "init", "--global"],
            env={**bus.environment, "HOME": str(home), "PATH": "/nowhere"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    running = [started() for _ in range(4)]
    ended = [(*process.communicate(timeout=BOUND * 2), process.returncode) for process in running]
    assert [(error, code) for _, error, code in ended] == [("", 0)] * 4
    assert sum("changed" in told for told, _, _ in ended) == 1
    assert (home / ".codex/config.toml").read_text().count("[mcp_servers.agentbus]") == 1
    assert init(bus, home, "--global", "--remove").returncode == 0
    assert (home / ".codex/config.toml").read_text() == 'model = "x"\n'
