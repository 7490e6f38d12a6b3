"""Numbers as people read them, and small pictures of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
STEPS: Final = "▁▂▃▄▅▆▇█"
PLAIN_STEPS: Final = "_.-~=*#@"
FULL, EMPTY = "█", "░"
PLAIN_FULL, PLAIN_EMPTY = "#", "."


def size(count: int) -> str:
    """Bytes as people read them: 512 B, 1.5 MiB."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.1f} {UNITS[unit]}"


def duration(seconds: float) -> str:
    """Seconds in the two largest units that are not 0: 42 s, 3 min 5 s, 2 h 10 min, 5 d 3 h."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def age(since: str | None, now: datetime) -> str:
    """How long ago, in the largest unit: 42 s, 3 min, 2 h, 5 d; nothing where nobody knows."""
    if since is None:
        return ""
    try:
        seconds = (now - datetime.fromisoformat(since)).total_seconds()
    except ValueError:
        return ""
    words = duration(seconds).split()
    return " ".join(words[:2])


def counted(count: int, noun: str) -> str:
    """A number with its noun: 1 commit, 2 commits."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def sparkline(samples: Sequence[float | None], width: int, *, plain: bool = False) -> str:
    """The samples from left to right, the highest of them as high as can be; where there are more
    than fit, the highest of neighbours. A blank is a second without a sample, or with nothing."""
    steps = PLAIN_STEPS if plain else STEPS
    peaks = [max(part) for part in _parts([sample or 0 for sample in samples], width)]
    highest = max(peaks, default=0)
    if highest <= 0:
        return " " * len(peaks)
    top = len(steps) - 1
    return "".join(
        steps[min(top, int(peak / highest * len(steps)))] if peak > 0 else " " for peak in peaks
    )


def _parts(samples: Sequence[float], width: int) -> list[Sequence[float]]:
    count = min(len(samples), width)
    edges = [len(samples) * place // count for place in range(count + 1)] if count > 0 else [0]
    return [samples[first:last] for first, last in pairwise(edges)]


def bar(percent: float, width: int, *, plain: bool = False) -> str:
    """How full, in so many characters; whatever is not empty shows."""
    full, empty = (PLAIN_FULL, PLAIN_EMPTY) if plain else (FULL, EMPTY)
    cells = round(min(max(percent, 0.0), 100.0) / 100 * width)
    if percent > 0:
        cells = max(cells, 1)
    return full * cells + empty * (width - cells)
