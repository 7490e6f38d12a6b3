from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from agentbus.cli.dashboard import dashboard, screen
from agentbus.cli.dashboard.view import Section, View
from agentbus.cli.snapshot import read

MIB = 1024 * 1024
NOW = datetime(2026, 11, 30, 17, 0, tzinfo=UTC)
READY: dict[str, Any] = {
    "version": "0.1.0",
    "state": "ready",
    "instance": "4f3a",
    "uptime_s": 3725.5,
    "config_path": "/home/somebody/.config/agentbus/config.json",
    "processes": [
        {"name": "supervisor", "pid": 1000, "uptime_s": 3725, "restarts": 0},
        {
            "name": "writer",
            "pid": 1001,
            "uptime_s": 12,
            "restarts": 2,
            "cpu_percent": 1.25,
            "rss_bytes": 20 * MIB,
        },
    ],
    "reasons": [],
    "redis": {
        "healthy": True,
        "flavour": "valkey",
        "version": "9.1.2",
        "pid": 1004,
        "dataset_bytes": 3 * MIB,
        "search": "fts5",
        "commit_id": 1204,
        "lag_commits": 1,
    },
    "sqlite": {
        "path": "/home/somebody/.local/share/agentbus/bus.sqlite3",
        "logical_bytes": 4 * MIB,
        "file_bytes": 5 * MIB,
        "wal_bytes": MIB // 2,
        "commit_id": 1205,
        "synchronous": "full",
    },
    "budgets": {"redis": {"used": 3 * MIB, "limit": 512 * MIB, "percent": 0.6}},
    "rates": {
        "accepted_per_s": 12.5,
        "delivered_per_s": 30.0,
        "accepted_recent": [0] * 50 + list(range(10)),
        "delivered_recent": [1] * 60,
    },
    "latency_ms": {
        "accept": {"p50": 0.61, "p99": 1.84, "mean_recent": [None] * 59 + [0.7]},
        "visible": {"p50": None, "p99": None},
    },
    "totals": {"messages": 1204, "accepted": 1300, "delivered": 2311, "evicted": 96, "rejected": 2},
    "sessions": [
        {
            "display_name": "Ada",
            "agent": "Ada",
            "application": "claude-code",
            "session": "8f1c",
            "child": None,
            "repository": "parser",
            "attached": True,
            "since": "2026-11-30T16:40:00.000Z",
            "subscriptions": [
                {"channel": "general", "position": 1204, "lag": 0},
                {
                    "channel": "memory",
                    "position": 3,
                    "lag": 17,
                    "oldest_undelivered_at": "2026-11-30T16:58:00.000Z",
                },
            ],
            "window": {"messages": 5, "bytes": 900},
        },
        {"display_name": "Ben-implement804", "application": "codex"},
    ],
    "channels": [
        {
            "name": "general",
            "kind": "ordinary",
            "messages": 1108,
            "oldest_seq": 97,
            "newest_seq": 1204,
            "subscribers": 2,
        },
        {"name": "memory", "kind": "memory", "oldest_seq": None, "newest_seq": None},
    ],
    "warnings": [],
}


def shown(document: dict[str, Any], width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(dashboard(read(document), NOW))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_stopped_bus_is_one_line():
    assert shown({"state": "stopped"}) == "agentbus is not running\n"


def test_a_daemon_that_failed_is_told_of_after_its_end():
    document = {"state": "stopped", "reasons": ["the last daemon failed: internal: x"]}
    assert shown(document) == (
        "agentbus is not running\n  because: the last daemon failed: internal: x\n"
    )


def test_of_a_daemon_that_does_not_answer_there_is_why_and_nothing_made_up():
    document = {"state": "starting", "reasons": ["process 5 does not listen"]}
    assert shown(document) == "agentbus is starting\n  because: process 5 does not listen\n"


def test_the_first_line_says_version_state_and_age():
    assert shown(READY).startswith("agentbus 0.1.0 is ready, up 1 h 2 min\n")


def test_nothing_is_wider_than_the_terminal():
    assert max(len(line.rstrip()) for line in shown(READY).splitlines()) <= 80


def test_how_far_the_index_is_behind_is_told_whole_at_80_columns():
    lags = {"healthy": False, "dataset_bytes": 511 * MIB, "lag_commits": 123_456}
    redis = {**READY["redis"], **lags}
    index = {"commit_id": 1, "lag_commits": 98_765, "documents": 1_234_567}
    budgets = {"redis": {"used": 511 * MIB, "limit": 512 * MIB, "percent": 99.8}}
    text = shown({**READY, "redis": redis, "budgets": budgets, "index": index})
    assert "123,456 commits behind" in text
    assert "1,234,567 texts, 98,765 commits behind" in text


def test_every_process_session_and_channel_has_its_line():
    lines = [" ".join(line.split()) for line in shown(READY).splitlines()]
    for expected in (
        "supervisor 1000 1 h 2 min 0",
        "writer 1001 12 s 2 1.2 % 20.0 MiB",
        "● Ada (parser) claude-code #general 1204 0 5",
        "#memory 3 17 2 min",
        "○ Ben-implement804 codex -",
        "#general ordinary 1108 97 1204 2",
        "#memory memory 0 - - 0",
    ):
        assert expected in lines


def test_usage_is_set_against_its_budget():
    text = shown(READY)
    assert f"valkey     █{'░' * 11} 0.6 % of 512.0 MiB, healthy, 1 commit behind" in text
    assert "4.0 MiB, WAL 512.0 KiB, synchronous full" in text


def test_rates_and_latencies_have_their_last_minute_beside_them():
    lines = shown(READY).splitlines()
    accepted = next(line for line in lines if line.startswith("accepted"))
    assert accepted == f"accepted     12.5/s {' ' * 17}▃▆█  accept 0.6 ms, p99 1.8 ms          █"
    delivered = next(line for line in lines if line.startswith("delivered"))
    assert delivered.rstrip() == f"delivered    30.0/s {'█' * 20}"


@pytest.mark.parametrize(
    ("percent", "cells"), [(0.0, 0), (0.1, 1), (50.0, 6), (85.0, 10), (99.0, 12), (400.0, 12)]
)
def test_a_fuller_budget_has_a_longer_bar(percent, cells):
    document = READY | {"budgets": {"redis": {"used": 1, "limit": MIB, "percent": percent}}}
    line = next(line for line in shown(document).splitlines() if line.startswith("valkey"))
    assert (line.count("█"), line.count("░")) == (cells, 12 - cells)


def test_reasons_and_warnings_come_right_below_the_state():
    document = READY | {
        "state": "recovering",
        "reasons": ["Redis is being rebuilt"],
        "warnings": ["the clock jumped"],
    }
    assert shown(document).splitlines()[:3] == [
        "agentbus 0.1.0 is recovering, up 1 h 2 min",
        "  because: Redis is being rebuilt",
        "  warning: the clock jumped",
    ]


def test_a_name_can_neither_style_nor_forge_a_line():
    document = READY | {"sessions": [{"display_name": "[red]Eve[/]\n\x1b[2JAda"}]}
    lines = [line.split() for line in shown(document).splitlines()]
    assert ["○", "[red]Eve[/]", "[2JAda", "-"] in lines


def test_a_document_of_another_version_is_shown_as_far_as_it_is_known():
    assert "agentbus 9.9.9 is dancing" in shown({"version": "9.9.9", "state": "dancing", "x": [1]})


# ---- the screen


def screened(document: dict[str, Any], view: View, height: int = 24, width: int = 80) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), color_system=None)
    console.print(screen(read(document), view, NOW, height))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


MANY = READY | {
    "sessions": [
        {"display_name": f"Agent{number}", "application": "codex", "subscriptions": [
            {"channel": "general", "position": number, "lag": number % 7}
        ]}
        for number in range(60)
    ],
    "warnings": [f"warning number {number}" for number in range(9)],
}  # fmt: skip


INDEXED = READY | {"index": {"commit_id": 1, "documents": 2}}


@pytest.mark.parametrize("document", [READY, INDEXED, MANY, {"state": "stopped"}])
@pytest.mark.parametrize("height", [24, 40, 100])
@pytest.mark.parametrize("section", Section)
def test_a_screen_is_filled_exactly(document, height, section):
    lines = screened(document, View(focus=section), height)
    assert len(lines) == height
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith("q quit")


def test_few_lines_are_all_shown_and_many_one_section_at_a_time():
    text = "\n".join(screened(READY, View(), height=40))
    assert all(head in text for head in ("SESSION", "CHANNEL", "PROCESS"))
    view = View()
    text = "\n".join(screened(MANY, view))
    assert "SESSION" in text
    assert "PROCESS " not in text
    view.press("tab")
    view.press("tab")
    assert "supervisor" in "\n".join(screened(MANY, view))


def test_many_remarks_leave_room_for_the_rest():
    lines = screened(MANY, View())
    assert [line for line in lines if "warning number" in line][-1] == "  warning: warning number 2"
    assert "  and 6 more" in lines


def test_those_for_whom_most_waits_come_first_or_another_column_decides():
    view = View()
    first = next(line for line in screened(MANY, view) if "Agent" in line)
    assert first.split()[-1] == "6"
    view.press("s")
    assert "Agent0" in next(line for line in screened(MANY, view) if "Agent" in line)
    assert "sort (name)" in screened(MANY, view)[-1]


def test_scrolling_ends_at_the_last_line():
    view = View()
    view.press("s")
    for _ in range(20):
        view.press("page down")
        lines = screened(MANY, view)
    shown = [line.split()[1] for line in lines if "Agent" in line]
    assert shown[-1] == "Agent9"
    view.press("home")
    assert "Agent0" in next(line for line in screened(MANY, view) if "Agent" in line)


def test_a_filter_leaves_what_it_names():
    view = View()
    for key in ("/", *"agent42", "enter"):
        view.press(key)
    names = [line.split()[1] for line in screened(MANY, view) if "Agent" in line]
    assert names == ["Agent42"]


def test_without_unicode_everything_is_ascii():
    console = Console(width=80, file=io.StringIO(), color_system=None)
    console.print(dashboard(read(READY), NOW, plain=True))
    assert console.file.getvalue().isascii()  # type: ignore[attr-defined]


def test_long_names_give_way_to_numbers():
    subscriptions = [{"channel": "project/" + "x" * 60, "position": 7, "lag": 12345}]
    session = {"display_name": "A" * 60, "attached": True, "subscriptions": subscriptions}
    document = READY | {"sessions": [session] * 30, "processes": []}
    for lines in (screened(document, View()), shown(document).splitlines()):
        heads = next(line for line in lines if "SESSION" in line).split()
        assert heads == ["SESSION", "CHANNEL", "POSITION", "WAITING", "OLDEST", "HELD"]
        row = next(line for line in lines if "AAA" in line).split()
        assert row[0] == "●"
        assert row[-3:-1] == ["7", "12345"]
        assert row[1].endswith("…")
        assert row[2].endswith("…")


def test_what_is_counted_is_sessions_however_many_lines_they_have():
    assert "> sessions, 2" in screened(READY, View(), height=40)
    ada = READY["sessions"][0]
    assert "> sessions 30" in screened(READY | {"sessions": [ada] * 30}, View())[6]
