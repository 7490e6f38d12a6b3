"""The commands of the tutorial, in their order, on an empty home."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.daemon import BOUND, wait

PAGE = (Path(__file__).resolve().parents[2] / "docs/tutorial.md").read_text()
LINES = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
ELSEWHERE = ("./contrib/quickstart", "export PATH=")
"""The first is what CI and every reader begins with; the second is done here."""


class Reader:
    """Somebody who has a home with nothing in it but a Codex that was used."""

    def __init__(self, home: Path) -> None:
        (home / ".codex").mkdir()
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        self.home = home
        self.environment = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8"}
        self.said: dict[str, str] = {}
        self.tail: subprocess.Popen[str] | None = None
        self.shown = home / "tail.txt"

    def run(self, line: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=2 * BOUND,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def watch(self, stack: ExitStack) -> None:
        shown = stack.enter_context(self.shown.open("w"))
        self.tail = subprocess.Popen(
            ["agentbus", "tail"], env=self.environment, cwd=self.home, stdout=shown, text=True
        )
        stack.callback(self.tail.wait, BOUND)
        stack.callback(self.tail.send_signal, signal.SIGTERM)

    def status(self) -> dict[str, object]:
        done = subprocess.run(
            ["agentbus", "status", "--json"],
            env=self.environment,
            capture_output=True,
            check=False,
        )
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def process(self, name: str) -> dict[str, int]:
        found = {each["name"]: each for each in self.status().get("processes", [])}  # type: ignore[attr-defined]
        return found.get(name, {})


@pytest.fixture
def reader() -> Iterator[Reader]:
    import shutil
    import tempfile

    home = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))
    reader = Reader(home)
    try:
        yield reader
    finally:
        subprocess.run(["agentbus", "stop"], env=reader.environment, check=False)
        shutil.rmtree(home)


def test_every_command_does_what_the_page_says(reader, monkeypatch):
    monkeypatch.setenv("PATH", reader.environment["PATH"])
    with ExitStack() as stack:
        for line in LINES:
            if line.startswith(ELSEWHERE):
                continue
            if line == "agentbus tail":
                reader.watch(stack)
                assert wait(lambda: reader.status()["state"] == "ready")
                continue
            if line == "kill -9 PID":
                killed = reader.process("writer")["pid"]
                os.kill(killed, signal.SIGKILL)
                assert wait(lambda: reader.process("writer").get("restarts") == 1)
                assert wait(lambda: reader.status()["state"] == "ready")
                continue
            reader.said[line] = reader.run(line)
    assert "Hello, is anybody here?" in reader.said["agentbus search hello"]
    assert "Hello, is anybody here?" in reader.shown.read_text()
    assert "+[mcp_servers.agentbus]" in reader.said["agentbus init --global --dry-run"]
    assert "[mcp_servers.agentbus]" in (reader.home / ".codex/config.toml").read_text()
    assert "RESTARTS" in reader.said["agentbus status"]
    assert "problem " not in reader.said["agentbus doctor"]
    assert reader.said["agentbus stop"] == "agentbus has stopped\n"
    assert (reader.home / ".local/share/agentbus/bus.sqlite3").exists()
