from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.cli.text import one_line


@given(st.text())
def test_whatever_comes_out_is_one_printable_line(text):
    assert one_line(text).isprintable()
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain words", "plain words"),
        ("two\nlines", "two lines"),
        ("\x1b[2J\u202eoverride", "[2J override"),
        ("Grüße 😀", "Grüße 😀"),
    ],
)
def test_what_moves_a_cursor_becomes_a_space(text, line):
    assert one_line(text) == line
