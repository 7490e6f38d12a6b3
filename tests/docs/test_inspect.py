"""The program that the how-to shows decides as the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import BOUND

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/inspect.md"
[PROGRAM] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("content", "decision"),
    [("all is well", "allow"), ("-----BEGIN RSA PRIVATE KEY-----", "deny")],
)
def test_the_program_on_the_page_decides(content: str, decision: str) -> None:
    asked = {"operation": "send", "payload": {"content": content}}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=True,
    )
    assert json.loads(result.stdout)["decision"] == decision
