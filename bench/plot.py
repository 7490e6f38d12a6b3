"""Charts as SVG, from figures with their ranges: nothing but text, so that they can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from bench.figures import Chart, Figure, Point

WIDTH: Final = 720
HEIGHT: Final = 420
LEFT: Final = 84
RIGHT: Final = 190
TOP: Final = 40
BOTTOM: Final = 56
COLOURS: Final = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b")
CAP: Final = 4
"""Half the width of the line that ends a range."""

ROW: Final = 22
NAMES: Final = 420
"""Width of the names beside the overview, whose own is `WIDE`."""

WIDE: Final = 860

Scale = Callable[[float], float]


def charts(figures: Sequence[Figure]) -> dict[str, str]:
    """Each chart that figures have a point in, by its name."""
    found: dict[Chart, list[tuple[Point, Figure]]] = {}
    for each in figures:
        if each.point is not None:
            found.setdefault(each.point.chart, []).append((each.point, each))
    return {chart.name: _chart(chart, members) for chart, members in found.items()}


def lines(members: Sequence[tuple[Point, Figure]]) -> dict[str, list[tuple[float, Figure]]]:
    """The figures of a chart, line by line, from left to right."""
    found: dict[str, list[tuple[float, Figure]]] = {}
    for point, each in members:
        found.setdefault(point.line, []).append((point.at, each))
    return {name: sorted(line, key=lambda item: item[0]) for name, line in found.items()}


def _chart(chart: Chart, members: Sequence[tuple[Point, Figure]]) -> str:
    ats = sorted({point.at for point, _ in members})
    across = _across(ats, logarithmic=chart.logarithmic and ats[0] > 0)
    ticks = _ticks(max(each.high for _, each in members))
    up = _linear(0, ticks[-1], HEIGHT - BOTTOM, TOP)
    parts = [_text(LEFT, TOP - 16, f"{chart.name} ({members[0][1].unit})", "start", 15)]
    parts += _grid(ats, across, ticks, up, chart.across)
    for number, (name, line) in enumerate(lines(members).items()):
        colour = COLOURS[number % len(COLOURS)]
        parts += _line(line, across, up, colour)
        parts += _legend(number, name, colour)
    bounds = {each.bound for _, each in members if each.meets is not None}
    parts += [_rule(LEFT, WIDTH - RIGHT, up(bound)) for bound in bounds if bound <= ticks[-1]]
    return _document(WIDTH, HEIGHT, parts)


def _line(
    line: Sequence[tuple[float, Figure]], across: Scale, up: Scale, colour: str
) -> Iterator[str]:
    """The medians, joined, and the range of each."""
    way = " ".join(f"{across(at):.1f},{up(each.value):.1f}" for at, each in line)
    yield f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
    for at, each in line:
        x, low, high = across(at), up(each.low), up(each.high)
        yield (
            f'<path d="M{x - CAP:.1f} {low:.1f}h{2 * CAP}M{x:.1f} {low:.1f}V{high:.1f}'
            f'M{x - CAP:.1f} {high:.1f}h{2 * CAP}" stroke="{colour}" fill="none"/>'
        )
        yield f'<circle cx="{x:.1f}" cy="{up(each.value):.1f}" r="3" fill="{colour}"/>'


def _grid(
    ats: Sequence[float], across: Scale, ticks: Sequence[float], up: Scale, label: str
) -> Iterator[str]:
    for tick in ticks:
        y = up(tick)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
        yield _text(LEFT - 8, y + 4, f"{tick:,g}", "end")
    last = -math.inf
    for at in ats:
        x = across(at)
        if x - last > 34:  # names that are closer would cover each other
            yield _text(x, HEIGHT - BOTTOM + 18, f"{at:,g}", "middle")
            last = x
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, label, "middle")


def _legend(number: int, name: str, colour: str) -> Iterator[str]:
    y = TOP + 8 + number * 18
    x = WIDTH - RIGHT + 16
    yield f'<path d="M{x} {y}h14" stroke="{colour}" stroke-width="2"/>'
    yield _text(x + 20, y + 4, name, "start")


def overview(figures: Sequence[Figure]) -> str:
    """Every figure that has a target, by how many times it is met: right of the line is well."""
    aimed = [each for each in figures if each.meets is not None]
    reserves = [_reserve(each) for each in aimed]
    least = min([0.5, *(low for low, _, _ in reserves)])
    most = max([2.0, *(high for _, _, high in reserves)])
    height = TOP + ROW * len(aimed) + BOTTOM
    across = _logarithmic(least / 1.1, most * 1.1, NAMES, WIDE - 20)
    parts = [_text(20, 22, "How many times each target is met", "start", 15)]
    for tick in _decades(least, most):
        x = across(tick)
        colour = "#444" if tick == 1 else "#ddd"
        parts.append(f'<path d="M{x:.1f} {TOP}V{height - BOTTOM + 4}" stroke="{colour}"/>')
        parts.append(_text(x, height - BOTTOM + 20, f"{tick:g}", "middle"))
    for number, (each, reserve) in enumerate(zip(aimed, reserves, strict=True)):
        parts += _reserve_row(TOP + ROW * number + ROW / 2, each, reserve, across)
    return _document(WIDE, height, parts)


def _reserve_row(
    y: float, each: Figure, reserve: tuple[float, float, float], across: Scale
) -> Iterator[str]:
    low, middle, high = map(across, reserve)
    colour = COLOURS[2] if each.meets else COLOURS[1]
    yield _text(NAMES - 8, y + 4, each.name, "end")
    yield f'<path d="M{low:.1f} {y:.1f}H{high:.1f}" stroke="{colour}" stroke-width="2"/>'
    yield f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _reserve(each: Figure) -> tuple[float, float, float]:
    """Low, median and high; 1 just meets the target."""
    tiny = 1e-9
    if each.is_most:
        low, middle, high = (each.bound / max(n, tiny) for n in (each.high, each.value, each.low))
    else:
        low, middle, high = (n / each.bound for n in (each.low, each.value, each.high))
    return tuple(min(max(n, 0.01), 100.0) for n in (low, middle, high))  # type: ignore[return-value]


# ---- scales


def _across(ats: Sequence[float], *, logarithmic: bool) -> Scale:
    scale = _logarithmic if logarithmic else _linear
    margin = 14
    return scale(ats[0], ats[-1], LEFT + margin, WIDTH - RIGHT - margin)


def _linear(low: float, high: float, start: float, end: float) -> Scale:
    span = high - low or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def _logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    plain = _linear(math.log(low), math.log(high), start, end)
    return lambda value: plain(math.log(value))


def _ticks(most: float) -> list[float]:
    """From 0 to the first round number that is not below."""
    rough = (most or 1.0) / 5
    power: float = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)] or [0.0, step]


def _decades(low: float, high: float) -> list[float]:
    exponents = range(-2, 3)
    steps = [factor * 10.0**power for power in exponents for factor in (1, 2, 5)]
    return [step for step in steps if low <= step <= high]


# ---- marks


def _rule(start: float, end: float, y: float) -> str:
    return f'<path d="M{start} {y:.1f}H{end}" stroke="#444" stroke-dasharray="5 4"/>'


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f"<text {place}>{escape(text)}</text>"


def _document(width: float, height: float, parts: Sequence[str]) -> str:
    attributes: Mapping[str, str] = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {width:g} {height:g}",
        "width": f"{width:g}",
        "height": f"{height:g}",
        "font-family": "sans-serif",
        "fill": "#222",
    }
    head = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    ground = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([f"<svg {head}>", ground, *parts, "</svg>", ""])
