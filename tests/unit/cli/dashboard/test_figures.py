from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.cli.dashboard.figures import age, bar, counted, duration, size, sparkline

MIB = 1024 * 1024


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


def test_ages_have_one_unit():
    now = datetime(2026, 11, 30, 17, 0, tzinfo=UTC)
    assert age("2026-11-30T16:54:30.000Z", now) == "5 min"
    assert age("2026-11-30T17:54:30.000Z", now) == "0 s"
    assert age(None, now) == age("yesterday", now) == ""


@given(st.lists(st.none() | st.floats(0, 1e9), max_size=100), st.integers(0, 50), st.booleans())
def test_a_sparkline_is_never_wider_than_asked_and_shows_the_highest(samples, width, plain):
    line = sparkline(samples, width, plain=plain)
    assert len(line) == min(len(samples), width)
    if line and any(samples):
        assert ("@" if plain else "█") in line


def test_a_sparkline_shows_peaks_among_neighbours():
    assert sparkline([0, 0, 8, 0, None, 4], 3) == " █▅"


@given(st.floats(-10, 1000), st.integers(1, 60))
def test_a_bar_is_as_wide_as_asked_and_whatever_is_there_shows(percent, width):
    shown = bar(percent, width)
    assert len(shown) == width
    assert ("█" in shown) == (percent > 0)
