"""The client that the how-to shows runs against a real daemon."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.daemon import BOUND, Daemon

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/by-hand.md"


def test_the_few_lines_to_the_socket_do_what_the_page_says():
    [program] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with Daemon() as bus:
        bus.start()
        result = subprocess.run(
            [sys.executable, "-c", program],
            env=bus.environment,
            capture_output=True,
            text=True,
            timeout=BOUND,
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
