"""What a measurement comes to: samples, a median with its range, and a target it meets or not."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row of the table. `low` and `high` are the extremes of the repeats behind `value`.

    `meets` is None where a figure only explains another and has no target of its own.
    """

    name: str
    value: float
    unit: str
    low: float
    high: float
    target: str = ""
    meets: bool | None = None


def figure(name: str, samples: Sequence[float], unit: str) -> Figure:
    """A figure that explains; median and range of its samples."""
    return Figure(name, statistics.median(samples), unit, min(samples), max(samples))


def at_least(name: str, samples: Sequence[float], unit: str, bound: float) -> Figure:
    """A figure whose median must not be below a bound."""
    value = statistics.median(samples)
    target = f"at least {bound:g} {unit}".strip()
    return Figure(name, value, unit, min(samples), max(samples), target, value >= bound)


def at_most(
    name: str, samples: Sequence[float], unit: str, bound: float, target: str = ""
) -> Figure:
    """A figure whose median must not be above a bound; `target` says where the bound is from."""
    value = statistics.median(samples)
    target = target or f"at most {bound:g} {unit}".strip()
    return Figure(name, value, unit, min(samples), max(samples), target, value <= bound)


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that `percent` of them do not pass."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
