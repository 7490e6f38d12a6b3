"""`python -m bench [--quick] [--only NAME]... [--directory DIR] [--json FILE] [--markdown FILE]
[--plots DIR]`.

Exit code 0 where every target was met, 1 where one was missed.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.bus import Bus
from bench.machine import facts
from bench.report import Report, draw, markdown
from bench.runs import full, quick
from bench.suite import MEASUREMENTS


class Progress:
    """One line on stderr that is written over, on a terminal; a line each time elsewhere."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._part = ""

    def begin(self, part: str) -> None:
        """The measurement that all that follows is of."""
        self._part = part

    def say(self, text: str) -> None:
        """Shows what is going on."""
        line = f"{time.monotonic() - self._began:4.0f} s  {self._part}  {text}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{line}")
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leaves the line."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for and prints the tables."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # daemons are stopped on the way out
    progress = Progress()
    plan = (quick if options.quick else full)(options.directory, progress.say)
    names = options.only or list(MEASUREMENTS)
    figures = {}
    for number, name in enumerate(names, start=1):
        progress.begin(f"[{number}/{len(names)}] {name}:")
        figures[name] = MEASUREMENTS[name](plan)
    report = Report(facts(options.directory, _server(options.directory)), figures)
    progress.end()
    _write(report, options)
    return 0 if report.met else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short and rough, two minutes")
    parser.add_argument("--only", action="append", choices=MEASUREMENTS, help="may be repeated")
    parser.add_argument("--directory", default=tempfile.gettempdir(), help="for all files")
    parser.add_argument("--json", help="write the results there")
    parser.add_argument("--markdown", help="write the tables there as well")
    parser.add_argument("--plots", help="draw charts (SVG) in this directory")
    return parser.parse_args(arguments)


def _server(base: str) -> str:
    with Bus(base, {}) as bus:
        redis = bus.status()["redis"]
    return f"{redis['flavour']} {redis['version']}"


def _write(report: Report, options: argparse.Namespace) -> None:
    table = markdown(report)
    sys.stdout.write(table)
    if options.markdown:
        Path(options.markdown).write_text(table)
    if options.json:
        Path(options.json).write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    if options.plots:
        draw(report, Path(options.plots))


if __name__ == "__main__":
    sys.exit(main())
