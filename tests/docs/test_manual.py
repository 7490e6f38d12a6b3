"""The manual page is one that `man` takes without a complaint, with every command in it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agentbus.cli.examples import EXAMPLES

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/agentbus.1"


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man")
def test_man_shows_every_command_and_complains_of_nothing():
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", str(PAGE)],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "MANWIDTH": "200", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    for name, examples in EXAMPLES.items():
        assert f"agentbus {name}" in lines
        for line, _ in examples:
            assert any(shown.startswith(line) for shown in lines), line
