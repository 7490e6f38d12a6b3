"""Looks for inputs that break a promise, led by coverage: `python -m tests.fuzz [TARGET...]`.

--seconds S   for all targets together (60 by default)
--replay FILE a single input of one target, with its traceback
--keep        adds the smallest set of inputs with new coverage to the corpus

Needs the dependency group `fuzz` (Linux). Each target runs in a process of its own, begins with
`tests/fuzz/corpus/TARGET`, and stops at its first finding, which is left in the directory shown.
What is kept is replayed by `test_targets.py`.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
NAMES = (
    "frames",
    "lines",
    "rpc",
    "replies",
    "mcp",
    "daemon",
    "settings",
    "query",
    "cursor",
    "names",
)
LARGEST = 2048
"""Bytes of an input: enough for a few lines, and quick."""

KEPT = 400
"""Bytes of an input that is added to the corpus, which stays small."""


def main() -> int:
    """The exit code: 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--replay", metavar="FILE")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    given = parser.parse_args()
    targets = given.targets or list(NAMES)
    if unknown := set(targets) - set(NAMES):
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    if given.engine is not None:
        return engine(targets[0], given.engine.split("\n"))
    if given.replay is not None:
        return replay(targets[0], Path(given.replay))
    each = max(1, given.seconds // len(targets))
    failed = [target for target in targets if not fuzz(target, each, keep=given.keep)]
    print("found something in: " + ", ".join(failed) if failed else "nothing found")
    return 1 if failed else 0


def replay(name: str, file: Path) -> int:
    """A single input; what it raises is shown."""
    from tests.fuzz.targets import TARGETS

    TARGETS[name](file.read_bytes())
    print(f"{name}: {file} breaks nothing")
    return 0


def engine(name: str, arguments: list[str]) -> int:
    """Within the process of one target: never returns. The first argument is the program that
    libFuzzer starts again for a merge."""
    import atheris

    with atheris.instrument_imports(include=["agentbus"]):
        from tests.fuzz.targets import TARGETS
    atheris.Setup(arguments, TARGETS[name])
    atheris.Fuzz()
    return 0


def fuzz(name: str, seconds: int, *, keep: bool) -> bool:
    """Whether nothing was found."""
    place = Path(tempfile.mkdtemp(prefix=f"ab-fuzz-{name}-", dir="/tmp"))
    found = place / "found"
    found.mkdir()
    corpus = HERE / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    words = HERE / "words" / f"{name}.txt"
    code, told = _run(
        place,
        name,
        f"-max_total_time={seconds}",
        f"-max_len={LARGEST}",
        "-timeout=10",
        "-rss_limit_mb=1024",
        f"-artifact_prefix={place}/",
        *([f"-dict={words}"] if words.exists() else []),
        str(found),
        str(corpus),
    )
    executions = re.findall(r"^(?:Done |#)(\d+)", told, re.MULTILINE)
    coverage = re.findall(r"cov: (\d+)", told)
    print(
        f"{name}: {executions[-1] if executions else 0} executions, "
        f"coverage {coverage[-1] if coverage else 0}",
        flush=True,
    )
    if code:
        print(told[-3000:], f"the input is in {place}", sep="\n", flush=True)
        return False
    if keep:
        _keep(place, name, found, corpus)
    shutil.rmtree(place)
    return True


def _run(place: Path, name: str, *arguments: str) -> tuple[int, str]:
    program = place / "engine"
    command = shlex.join([sys.executable, "-m", "tests.fuzz", name])
    program.write_text(f'#!/bin/sh\nexec {command} --engine="$(printf \'%s\\n\' "$0" "$@")"\n')
    program.chmod(0o700)
    done = subprocess.run(
        [program, *arguments],
        cwd=HERE.parent.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        preexec_fn=lambda: os.nice(10),
    )
    return done.returncode, done.stdout.decode(errors="replace")


def _keep(place: Path, name: str, found: Path, corpus: Path) -> None:
    """Adds to the corpus what covers something that nothing in it covers."""
    before = len(list(corpus.iterdir()))
    _run(place, name, "-merge=1", f"-max_len={KEPT}", str(corpus), str(found))
    print(f"{name}: {len(list(corpus.iterdir())) - before} inputs kept", flush=True)


if __name__ == "__main__":
    sys.exit(main())
