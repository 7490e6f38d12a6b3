from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.cli.keys import read


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("q", ["q"]),
        ("\x1b", ["escape"]),
        ("\x1b[A\x1b[B", ["up", "down"]),
        ("\x1b[5~x", ["page up", "x"]),
        ("a\tb\r\x7f", ["a", "tab", "b", "enter", "backspace"]),
        ("\x1b[1;5Cq", ["q"]),
        ("\x1bOPq", ["q"]),
        ("京é", ["京", "é"]),
        ("\x01\x02", []),
    ],
)
def test_keys_have_names(typed, keys):
    assert read(typed) == keys


@given(st.text())
def test_whatever_is_typed_is_read(typed):
    assert all(len(key) > 1 or key.isprintable() for key in read(typed))
