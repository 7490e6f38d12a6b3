"""Homes in which something is wrong, and `agentbus doctor` in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agentbus.harness import connect
from agentbus.harness.record import locked
from tests.support.daemon import BOUND, Daemon

Place = Callable[..., Daemon]


@pytest.fixture
def place() -> Iterator[Place]:
    """Makes places in which nothing runs yet, with settings of their own."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(Daemon(**settings))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """One in which Codex was used, and a repository in it."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text('model = "x"\n')
    (tmp_path / "work/.git").mkdir(parents=True)
    return tmp_path


class Told:
    """What `doctor --json` has said."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        assert done.stderr == ""
        self.code = done.returncode
        self.document: dict[str, Any] = json.loads(done.stdout)
        self.text = done.stdout
        assert self.code == int(self.document["problems"] > 0)

    def of(self, check: str, result: str) -> str:
        """The findings of a check with a result, with what to do; there must be one."""
        lines = [
            "\n".join((each["found"], *each["do"]))
            for each in self.document["checks"]
            if (each["check"], each["result"]) == (check, result)
        ]
        assert lines, f"{check} has no {result}: {self.text}"
        return "\n".join(lines)

    def problem(self, check: str) -> str:
        """There is no problem but those of this check."""
        others = [
            each
            for each in self.document["checks"]
            if each["result"] == "problem" and each["check"] != check
        ]
        assert others == []
        return self.of(check, "problem")

    def warning(self, check: str) -> str:
        """It is no problem."""
        assert self.code == 0, self.text
        return self.of(check, "warning")


class Doctor:
    """Runs it in a home, with no program on the PATH but what a test adds."""

    def __init__(self, bus: Daemon, home: Path, **more: str) -> None:
        self.home = home
        self.environment = {**bus.environment, "HOME": str(home), "PATH": "/nowhere", **more}

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Any command in this home."""
        return subprocess.run(
            [sys.executable, "-m", "agentbus", *arguments],
            env={**self.environment, **more},
            cwd=self.home / "work",
            capture_output=True,
            text=True,
            timeout=BOUND * 2,
            check=False,
        )

    def connect(self) -> None:
        """What `init --global` does, and then the user of Codex."""
        machine = connect.this_machine(self.environment)
        program = connect.this_program(None, self.environment)
        with locked(connect.record_directory(machine)) as record:
            for each in connect.choose(machine, None):
                targets = each.targets(machine, program)
                assert connect.connect(each.name, targets, record, dry=False).error is None
        trusted = f'[hooks.state."{self.home}/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "x"\n'
        with (self.home / ".codex/config.toml").open("a") as settings:
            settings.write(f"\n{trusted}")

    def __call__(self, *arguments: str, **more: str) -> Told:
        return Told(self.run("doctor", "--json", *arguments, **more))


def tree(*places: str | Path) -> Mapping[str, tuple[int, int, bytes]]:
    """Every file and directory, with mode, time of the last change and content."""
    found = {}
    for place in places:
        for path in [Path(place), *sorted(Path(place).rglob("*"))]:
            if not path.exists():
                continue
            seen = os.lstat(path)
            content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (seen.st_mode, seen.st_mtime_ns, content)
    return found
