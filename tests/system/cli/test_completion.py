"""Completion, in a shell and by a home of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BASH = shutil.which("bash")
ASK = """
source "$1"
COMP_WORDS=(agentbus {words}) COMP_CWORD={last} COMPREPLY=()
_agentbus_completion agentbus "{word}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def environment(home: Path) -> dict[str, str]:
    """One in which `agentbus` is this program."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8"}


def run(home: Path, *command: str) -> str:
    done = subprocess.run(
        command, env=environment(home), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_what_is_installed_for_bash_completes_commands_and_options(tmp_path):
    assert "bash completion installed" in run(tmp_path, "agentbus", "--install-completion", "bash")
    [script] = tmp_path.rglob("agentbus.sh")
    assert str(script) in (tmp_path / ".bashrc").read_text()
    asked = ASK.format(words="do", last=1, word="do")
    assert run(tmp_path, BASH, "-c", asked, "-", str(script)).split() == ["doctor"]
    asked = ASK.format(words="status --w", last=2, word="--w")
    assert run(tmp_path, BASH, "-c", asked, "-", str(script)).split() == ["--watch"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(tmp_path, shell):
    script = run(tmp_path, "agentbus", "--show-completion", shell)
    assert "_AGENTBUS_COMPLETE" in script
    assert os.listdir(tmp_path) == []
