"""The demo: what a newcomer sees first."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import psutil

from tests.support.daemon import BOUND, wait

DEMO = [sys.executable, "-m", "agentbus", "demo"]
PLACE = re.compile(r"A bus of its own in (/tmp/agentbus-demo-\w+);")


def of_place(root: str) -> list[int]:
    """Processes of the bus in a demo's directory."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("AGENTBUS_RUNTIME_DIR") == f"{root}/run":
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_the_demo_loses_nothing_and_leaves_nothing():
    result = subprocess.run(DEMO, capture_output=True, text=True, timeout=BOUND * 3, check=False)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    assert "\x1b" not in result.stdout
    assert all(line == line.rstrip() for line in result.stdout.splitlines())
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "kill -9 writer" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("Nothing was lost. Four crashes, ")
    [root] = PLACE.findall(result.stdout)
    assert not os.path.exists(root)
    assert not of_place(root)


def test_an_interrupted_demo_leaves_nothing_either():
    demo = subprocess.Popen(DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    told = ""
    for line in demo.stdout:
        told += line
        if "They talk" in line:
            break
    [root] = PLACE.findall(told)
    assert of_place(root)
    demo.send_signal(signal.SIGTERM)
    _, said = demo.communicate(timeout=BOUND)
    assert demo.returncode == 128 + signal.SIGTERM
    assert "interrupted" in said
    assert wait(lambda: not of_place(root))
    assert not os.path.exists(root)
