"""`python -m bench [--quick] [--only NAME]... [--directory DIR] [--json FILE] [--markdown FILE]
[--plots DIR]`.

Exit code 0 where every target was met, 1 where one was missed or could not be measured. The files
are written again after each measurement, so that a run that is interrupted leaves what it has.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.bus import Bus
from bench.machine import facts
from bench.progress import Progress
from bench.report import Report, draw, markdown
from bench.runs import full, quick
from bench.suite import MEASUREMENTS, expected


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for and prints the tables."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # daemons are stopped on the way out
    names = list(dict.fromkeys(options.only or MEASUREMENTS))
    progress = Progress(sys.stderr, expected(names, quick=options.quick))
    plan = (quick if options.quick else full)(options.directory, progress.say)
    machine = {"run": _run(options), **facts(options.directory, _server(options.directory))}
    report = Report(machine, {}, {}, {})
    for name in names:
        progress.begin(name)
        began = time.monotonic()
        try:
            report.figures[name] = MEASUREMENTS[name](plan)
        except Exception as error:  # noqa: BLE001 - what the others come to is not lost with it
            traceback.print_exc()
            report.failed[name] = f"{type(error).__name__}: {error}"
        report.seconds[name] = time.monotonic() - began
        _write(report, options)
    progress.end()
    sys.stdout.write(markdown(report))
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


def _run(options: argparse.Namespace) -> str:
    """What was asked for, in a word or some."""
    return " ".join(["quick" if options.quick else "full", *(options.only or [])])


def _server(base: str) -> str:
    with Bus(base, {}) as bus:
        redis = bus.status()["redis"]
    return f"{redis['flavour']} {redis['version']}"


def _write(report: Report, options: argparse.Namespace) -> None:
    if options.markdown:
        Path(options.markdown).write_text(markdown(report))
    if options.json:
        Path(options.json).write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    if options.plots:
        draw(report, Path(options.plots))


if __name__ == "__main__":
    sys.exit(main())
