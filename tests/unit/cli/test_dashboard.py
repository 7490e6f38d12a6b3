from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from agentbus.cli.dashboard import counted, dashboard, duration, size
from agentbus.cli.snapshot import read

MIB = 1024 * 1024
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
                {"channel": "memory", "position": 3, "lag": 17},
            ],
            "window": {"messages": 0, "bytes": 0},
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
    console.print(dashboard(read(document)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_stopped_bus_is_one_line():
    assert shown({"state": "stopped"}) == "agentbus is not running\n"


def test_the_first_line_says_version_state_and_age():
    assert shown(READY).startswith("agentbus 0.1.0 is ready, up 1 h 2 min\n")


def test_nothing_is_wider_than_the_terminal():
    assert max(len(line.rstrip()) for line in shown(READY).splitlines()) <= 80


def test_every_process_session_and_channel_has_its_line():
    lines = [" ".join(line.split()) for line in shown(READY).splitlines()]
    for expected in (
        "supervisor 1000 1 h 2 min 0",
        "writer 1001 12 s 2 1.2 % 20.0 MiB",
        "Ada (parser) claude-code yes #general 1204 0",
        "#memory 3 17",
        "Ben-implement804 codex no -",
        "#general ordinary 1108 97 1204 2",
        "#memory memory 0 - - 0",
    ):
        assert expected in lines


def test_usage_is_set_against_its_budget():
    text = shown(READY)
    assert "valkey 9.1.2  healthy, 3.0 MiB of 512.0 MiB (0.6 %), 1 commit behind" in text
    assert "4.0 MiB, WAL 512.0 KiB" in text


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
    assert ["[red]Eve[/]", "[2JAda", "no", "-"] in lines


def test_a_document_of_another_version_is_shown_as_far_as_it_is_known():
    assert "agentbus 9.9.9 is dancing" in shown({"version": "9.9.9", "state": "dancing", "x": [1]})


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (MIB, "1.0 MiB"), (3 * 2**40, "3.0 TiB")],
)
def test_sizes_have_the_unit_that_people_would_choose(count, text):
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (0.4, "0 s"),
        (42, "42 s"),
        (185, "3 min 5 s"),
        (3600, "1 h"),
        (7800, "2 h 10 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations_have_their_two_largest_units(seconds, text):
    assert duration(seconds) == text


def test_nouns_follow_their_numbers():
    assert (counted(1, "commit"), counted(2000, "commit")) == ("1 commit", "2,000 commits")
