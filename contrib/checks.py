"""Lint, layers, types, tests: everything runs, the exit code tells whether all of it was well.

The static checks come first and are summed up before the tests, whose own closing line is the last
one when nothing else failed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SUITES = ("unit", "fuzz", "stateful", "simulation", "integration", "system", "crash", "docs")
SIDE_BY_SIDE = ("-n", "auto", "--dist", "loadfile")
"""One process for each core; a file stays in one of them, since its tests may share a bus."""
SOURCES = ("agentbus", "tests", "bench", "contrib", "docs")
STATIC: dict[str, tuple[tuple[str, ...], ...]] = {
    "lint": (("ruff", "check", *SOURCES), ("ruff", "format", "--check", *SOURCES)),
    "layers": (("lint-imports",),),
    "types": (("mypy",),),
}


def main(arguments: list[str]) -> int:
    """0 where everything passed, else 1, or pytest's own code where only that failed."""
    failed = [name for name, commands in STATIC.items() if not _passes(name, commands)]
    folders = [path for path in (f"tests/{suite}" for suite in SUITES) if (ROOT / path).is_dir()]
    _say(f"tests   {' '.join(arguments or folders)}")
    code = _call("pytest", *arguments) if arguments else _tests(folders)
    if failed:
        sys.stderr.write(f"\nFAILED besides the tests: {', '.join(failed)} (see above)\n")
    return code or int(bool(failed))


def _tests(folders: list[str]) -> int:
    """What failed beside other tests is run once more, alone; what fails again has failed."""
    code = _call("pytest", *SIDE_BY_SIDE, *folders)
    if code != pytest.ExitCode.TESTS_FAILED:
        return code
    _say("tests   once more, alone: those that failed")
    return _call("pytest", "--last-failed", "--last-failed-no-failures", "none", *folders)


def _passes(name: str, commands: tuple[tuple[str, ...], ...]) -> bool:
    started = time.monotonic()
    for command in commands:
        result = subprocess.run(
            [BIN / command[0], *command[1:]],
            cwd=ROOT,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if result.returncode:
            _say(f"{name:<7} FAILED: {' '.join(command)}\n{result.stdout}")
            return False
    _say(f"{name:<7} ok ({time.monotonic() - started:.1f} s)")
    return True


def _call(command: str, *arguments: str) -> int:
    return subprocess.run([BIN / command, *arguments], cwd=ROOT, check=False).returncode


def _say(text: str) -> None:
    sys.stdout.write(f"* {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
