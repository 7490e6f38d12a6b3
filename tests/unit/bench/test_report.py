"""Figures as tables, as JSON and as charts."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec
import pytest

from bench.figures import Chart, Point, at_least, at_most, figure
from bench.report import Report, draw, file_name, markdown

SVG = "{http://www.w3.org/2000/svg}"
CHART = Chart("accepted of <the> bare loop", "in flight")


def report() -> Report:
    varied = [
        figure(f"{line} {at}", [at / 2, at, at * 2], "x", Point(CHART, line, at))
        for line in ("one & all", "two")
        for at in (1, 10, 100)
    ]
    return Report(
        {"processor": "some"},
        {
            "alone": [at_least("fast", [0.6, 0.4, 0.5], "x", 0.5), figure("shown", [3.0], "ms")],
            "varied": [*varied, at_most("slow", [2.0], "ms", 1.0, point=Point(CHART, "two", 5))],
        },
    )


def drawn(directory, name):
    return ElementTree.fromstring((directory / name).read_text())


def test_figures_of_a_chart_are_a_table_of_their_own():
    text = markdown(report())
    assert "| fast | 0.50 x | 0.40 to 0.60 | at least 0.5 x | met |" in text
    assert "| slow | 2.00 ms | 2.00 to 2.00 | at most 1 ms | **missed** |" in text
    assert "| accepted of <the> bare loop, x, by in flight | 1 | 5 | 10 | 100 |" in text
    assert "| one & all | 1.00 |  | 10.0 | 100 |" in text
    assert "one & all 10" not in text


def test_a_report_is_met_where_no_target_was_missed():
    missed = report()
    assert not missed.met
    assert Report({}, {"alone": missed.figures["alone"]}).met


def test_each_measurement_says_how_long_it_took_and_whether_it_failed():
    found = msgspec.structs.replace(
        report(), seconds={"alone": 5.04, "varied": 125, "lost": 2}, failed={"lost": "a|b\nc"}
    )
    lines = markdown(found).splitlines()
    assert "| **`alone`**, took 5.0 s | | | | |" in lines
    assert "| **`varied`**, took 2.1 min | | | | |" in lines
    assert "| **`lost`**, took 2.0 s | | | | **failed**: a/b c |" in lines


def test_a_report_is_not_met_where_something_could_not_be_measured():
    assert not Report({}, {}, failed={"lost": "why"}).met


def test_what_programs_read_is_what_was_measured():
    found = report()
    assert msgspec.json.decode(msgspec.json.encode(found), type=Report) == found


def test_a_chart_shows_every_figure_of_its_own_with_its_range(tmp_path):
    draw(report(), tmp_path)
    chart = drawn(tmp_path, "accepted-of-the-bare-loop.svg")
    assert len(chart.findall(f"{SVG}circle")) == 7
    assert len(chart.findall(f"{SVG}polyline")) == 2
    heights = {circle.get("cx"): float(circle.get("cy")) for circle in chart.iter(f"{SVG}circle")}
    assert sorted(heights.values(), reverse=True)[0] > min(heights.values())
    texts = [text.text for text in chart.iter(f"{SVG}text")]
    assert "one & all" in texts
    assert "in flight" in texts


def test_the_overview_shows_every_target_and_whether_it_is_met(tmp_path):
    draw(report(), tmp_path)
    overview = drawn(tmp_path, "overview.svg")
    names = [text.text for text in overview.iter(f"{SVG}text")]
    assert {"fast", "slow"} <= set(names)
    line = next(float(text.get("x")) for text in overview.iter(f"{SVG}text") if text.text == "1")
    fast, slow = (float(circle.get("cx")) for circle in overview.iter(f"{SVG}circle"))
    assert fast == pytest.approx(line, abs=0.2)
    assert slow < line


def test_what_has_neither_target_nor_place_is_not_drawn(tmp_path):
    assert draw(Report({}, {"alone": [figure("shown", [0.0], "ms")]}), tmp_path) == []


@pytest.mark.parametrize("value", [0.0, 1e-6, 1.0, 123456.7])
def test_any_value_can_be_drawn(tmp_path, value):
    point = Point(Chart("c", "x", logarithmic=False), "line", 0)
    rows = [at_least("f", [value], "x", 0.5, point), at_most("g", [value], "x", 0.5)]
    for path in draw(Report({}, {"r": rows}), tmp_path):
        assert "nan" not in path.read_text()


def test_a_chart_gives_its_file_a_plain_name():
    assert file_name("Accepted, of the bare loop/normal") == "accepted-of-the-bare-loop-normal"
