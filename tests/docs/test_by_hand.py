"""The client that the how-to shows runs against a real daemon."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/by-hand.md"
AGENTBUS = [sys.executable, "-m", "agentbus"]


@pytest.fixture
def environment():
    """Leads to a bus of its own, as the page sets it up; it runs."""
    root = tempfile.mkdtemp(prefix="ab-", dir="/tmp")
    Path(root, "config.json").write_text(f'{{"data_directory": "{root}/data"}}')
    environment = {
        **os.environ,
        "AGENTBUS_CONFIG": f"{root}/config.json",
        "AGENTBUS_RUNTIME_DIR": f"{root}/run",
    }
    subprocess.run([*AGENTBUS, "daemon"], env=environment, check=True, timeout=60)
    yield environment
    subprocess.run([*AGENTBUS, "stop"], env=environment, check=True, timeout=60)
    shutil.rmtree(root)


def test_the_few_lines_to_the_socket_do_what_the_page_says(environment):
    [program] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stderr == ""
    said = [line for line in result.stdout.splitlines() if not line.startswith("notification")]
    assert said[0].startswith("bus ")
    assert said[0].endswith(" is ready")
    assert said[1:] == [
        "I am Hand",
        "accepted as number 1",
        "Hello from a few lines of Python.",
    ]
