"""A seed is the whole story: whoever has it has every step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.simulation.runs import run

COMMAND = Path(__file__).with_name("__main__.py")


def test_the_same_seed_takes_the_same_steps():
    assert run(5) == run(5)


def test_another_seed_takes_others():
    assert run(5).digest != run(6).digest


def test_another_process_with_other_hashes_takes_the_same_steps():
    told = [replay(hash_seed) for hash_seed in ("1", "2")]
    assert told[0] == told[1]
    assert told[0].splitlines()[-1] == "replays"


def replay(hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, COMMAND, "--seed", "6"],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
