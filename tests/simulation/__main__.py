"""Runs the simulation: `python -m tests.simulation`, or this file itself.

--seed N      one run, twice, to see that it replays; --trace shows every step of it
--seconds S   as many seeds as fit (20 by default; hours are fine), from --first on
"""

from __future__ import annotations

import argparse
import sys
from itertools import count
from pathlib import Path
from typing import Final

if __name__ == "__main__" and __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.simulation.runs import Failed, Report, Spent, run, summary

TELL_SECONDS: Final = 60.0
"""How often a long run says how far it is."""


def main() -> int:
    """The exit code: 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--keep-going", action="store_true", help="after a failure too")
    given = parser.parse_args()
    if given.seed is not None:
        return one(given.seed, trace=given.trace)
    return many(given.first, given.seconds, keep_going=given.keep_going)


def one(seed: int, *, trace: bool) -> int:
    """A single seed."""
    try:
        report = run(seed, print if trace else None)
        same = trace or run(seed).digest == report.digest
    except Failed as failed:
        print(*failed.trace[-40:], failed, sep="\n")
        return 1
    print(report)
    print("replays" if same else "does NOT replay")
    return 0 if same else 1


def many(first: int, seconds: float, *, keep_going: bool) -> int:
    """As many seeds as fit."""
    spent = Spent()
    reports: list[Report] = []
    failures = 0
    told = TELL_SECONDS
    for seed in count(first):
        try:
            reports.append(run(seed))
        except Failed as failed:
            failures += 1
            print(failed, flush=True)
        if spent.seconds >= seconds or (failures and not keep_going):
            break
        if spent.seconds >= told:
            told += TELL_SECONDS
            print(f"up to seed {seed}: {failures} failed", file=sys.stderr, flush=True)
    print(summary(reports, spent), f"{failures} failed", sep=", ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
