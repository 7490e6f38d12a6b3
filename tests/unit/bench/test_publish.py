"""The figures of a run are put where pages have a place for them, and nowhere else."""

from __future__ import annotations

import msgspec

from bench.figures import Chart, Point, at_least, at_most, figure
from bench.growth import cost_chart
from bench.publish import (
    FLOORS,
    ROOT,
    brokers,
    growth,
    main,
    merged,
    peers,
    publish,
    targets,
    tuning,
)
from bench.report import Report, markdown

SEND = "accept, full, one in flight, of the bare loop"
REPORT = Report(
    {"run": "quick latency", "processor": "some"},
    {
        "latency": [at_most(SEND, [2.6, 2.4], "x", 1.3), figure("shown", [3.0], "ms")],
        "hops": [figure(FLOORS[SEND], [1.9], "x")],
        "rest": [at_least("other", [3.0], "x", 1.0, Point(Chart("Some chart", "size"), "a", 1))],
    },
)
PAGE = """# Page

before
<!-- bench: {} -->
old
<!-- end -->
after ![chart](../images/some-chart.svg) ![unmeasured](../images/none.svg)
"""


def test_a_table_replaces_what_was_in_its_place(tmp_path):
    page = tmp_path / "docs/how-to/page.md"
    page.parent.mkdir(parents=True)
    page.write_text(PAGE.format("measured"))
    chart = tmp_path / "docs/how-to/../images/some-chart.svg"
    assert list(publish(REPORT, tmp_path)) == [page, chart]
    assert page.read_text() == PAGE.format("measured").replace("old\n", markdown(REPORT))
    assert chart.read_text().startswith("<svg")
    assert not (tmp_path / "docs/images/none.svg").exists()
    assert list(publish(REPORT, tmp_path)) == [chart]


def test_a_table_stays_for_which_nothing_was_measured(tmp_path):
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    for name in ("growth", "tuning", "peers", "brokers"):
        page.write_text(PAGE.format(name).replace("../", ""))
        assert list(publish(Report({}, {}), tmp_path)) == []


def test_targets_stand_beside_what_bare_processes_reach():
    lines = targets(REPORT).splitlines()
    assert f"| {SEND} | at most 1.3 x | 2.50 x | 2.40 to 2.60 | 1.90 x | **missed** |" in lines
    assert "| other | at least 1 x | 3.00 x | 3.00 to 3.00 |  | met |" in lines
    assert len(lines) == 4


def test_growth_is_told_with_the_costs_at_both_ends():
    chart = cost_chart("channels")
    costs = [figure(f"cost {at}", [at * 2], "us", Point(chart, "bus", at)) for at in (1, 10, 1000)]
    bare = [figure("bare", [1.0], "us", Point(chart, "bare loop", 1000))]
    exponent = at_most("growth with channels, exponent", [1.0, 0.9, 1.1], "", 1.5)
    lines = growth(Report({}, {"growth": [*costs, *bare, exponent]})).splitlines()
    assert lines[2:] == ["| channels | 1 | 1,000 | 2.00 | 2000 | 1.00 (0.90 to 1.10) |"]


def test_each_place_of_the_grid_has_a_row():
    rows = [
        figure(f"{title}: {place}", [1.5], unit)
        for place in ("64 MiB, 10 % free", "64 MiB, 25 % free")
        for title, unit in (("tuning, accepted", "messages/s"), ("tuning, gaps told", "a second"))
    ]
    assert tuning(Report({}, {"tuning": rows})).splitlines() == [
        "| | accepted, messages/s | gaps told, a second |",
        "|---|---|---|",
        "| 64 MiB, 10 % free | 1.50 | 1.50 |",
        "| 64 MiB, 25 % free | 1.50 | 1.50 |",
    ]


def test_what_others_reach_stands_in_columns():
    found = Report(
        {},
        {
            "peers": [
                figure("send: agentbus", [1.0], "ms"),
                figure("send: claude-peers", [2.0], "ms"),
                at_least("send: ahead of the best other", [2.0], "x", 1.0),
                figure("synchronous sends: agentbus", [1000.0], "messages/s"),
                figure("synchronous sends: NATS JetStream", [2000.0], "messages/s"),
            ]
        },
    )
    assert peers(found).splitlines()[2:] == ["| send, ms | 1.00 |  |  |  |  |  | 2.00 |"]
    assert brokers(found).splitlines()[2:] == ["| synchronous sends, messages/s | 1000 | 2000 |  |"]


def test_of_several_reports_the_last_has_the_word():
    later = Report(
        {"run": "quick latency", "processor": "other"},
        {"latency": [figure("shown", [4.0], "ms")]},
        {},
        {"cold": "why"},
    )
    found = merged([REPORT, later])
    assert found.machine == later.machine
    assert merged([later, Report({"run": "full"}, {})]).machine["run"] == "quick latency; full"
    assert list(found.figures) == ["latency", "hops", "rest"]
    assert found.figures["latency"] == later.figures["latency"]
    assert found.failed == {"cold": "why"}
    assert merged([later, Report({}, {"cold": []})]).failed == {}


def test_nothing_is_written_without_a_report(tmp_path, capsys):
    assert main([]) == 2
    assert "REPORT" in capsys.readouterr().err


def test_the_pages_of_the_repository_have_a_place_for_both_tables(tmp_path):
    places = [
        path
        for path in (*ROOT.glob("*/*.md"), *ROOT.glob("docs/how-to/*.md"))
        if "<!-- bench: " in path.read_text()
    ]
    assert sorted(path.name for path in places) == ["README.md", "performance.md", "tuning.md"]


def test_a_report_is_read_as_it_was_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("bench.publish.ROOT", tmp_path)
    written = tmp_path / "report.json"
    written.write_bytes(msgspec.json.encode(REPORT))
    assert main([str(written)]) == 0
    assert capsys.readouterr().out == ""
