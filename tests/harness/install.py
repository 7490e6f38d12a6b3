"""Installs the harness programs from npm, into a directory of their own.

    python -m tests.harness.install DIRECTORY

Versions are those of `package.json` beside this file. AGENTBUS_HARNESS_VERSIONS names others, in
npm's notation and with blanks between: "@openai/codex@latest @anthropic-ai/claude-code@2.1.300".
What is there already is left as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = "AGENTBUS_HARNESS_VERSIONS"
MANIFEST = Path(__file__).with_name("package.json")


def install(directory: Path, others: list[str]) -> None:
    """Leaves programs of the wanted versions in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    stamp = directory / "installed"  # written last: without it nothing is finished
    wanted = MANIFEST.read_text() + "\n".join(others)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.copy(MANIFEST, directory)
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is not on the PATH; the harness programs come from there")
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--save-exact")
    done = subprocess.run([npm, "install", *options, *others], cwd=directory, check=False)
    if done.returncode:
        sys.exit("npm could not install the harness programs")
    stamp.write_text(wanted)


if __name__ == "__main__":
    install(Path(sys.argv[1]), os.environ.get(VERSIONS, "").split())
