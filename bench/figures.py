"""What a measurement comes to: samples, a median with its range, and a target it meets or not."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec


class Chart(msgspec.Struct, frozen=True):
    """Figures that are drawn together: those of one unit, over something that was varied."""

    name: str
    across: str
    logarithmic: bool = True


class Point(msgspec.Struct, frozen=True):
    """Where a figure stands in a chart: on which of its lines, and at what it was varied to."""

    chart: Chart
    line: str
    at: float


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row of the table. `low` and `high` are the extremes of the repeats behind `value`.

    `meets` is None where a figure only explains another and has no target of its own. `bound` is
    the target's number, which `value` is not to be below, or where `is_most` not above.
    """

    name: str
    value: float
    unit: str
    low: float
    high: float
    target: str = ""
    meets: bool | None = None
    point: Point | None = None
    bound: float = 0.0
    is_most: bool = False


def figure(name: str, samples: Sequence[float], unit: str, point: Point | None = None) -> Figure:
    """A figure that explains; median and range of its samples."""
    value = statistics.median(samples)
    return Figure(name, value, unit, min(samples), max(samples), point=point)


def at_least(
    name: str, samples: Sequence[float], unit: str, bound: float, point: Point | None = None
) -> Figure:
    """A figure whose median must not be below a bound."""
    plain = figure(name, samples, unit, point)
    target = f"at least {bound:g} {unit}".strip()
    return msgspec.structs.replace(plain, target=target, meets=plain.value >= bound, bound=bound)


def at_most(
    name: str,
    samples: Sequence[float],
    unit: str,
    bound: float,
    target: str = "",
    point: Point | None = None,
) -> Figure:
    """A figure whose median must not be above a bound; `target` says where the bound is from."""
    plain = figure(name, samples, unit, point)
    target = target or f"at most {bound:g} {unit}".strip()
    return msgspec.structs.replace(
        plain, target=target, meets=plain.value <= bound, bound=bound, is_most=True
    )


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that `percent` of them do not pass."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Each repeat of ours by the one of theirs that was measured beside it."""
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """How fast y grows with x: 0 not at all, 1 as x does, 2 as its square. The steepest way from
    the first point to another, so that one good point hides no bad one; all above 0."""
    (x0, y0), *others = points
    return max(math.log(y / y0) / math.log(x / x0) for x, y in others)
