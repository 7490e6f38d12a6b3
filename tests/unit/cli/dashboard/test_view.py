from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.cli.dashboard.view import MOST_TYPED, SORTS, Section, View

KEYS = st.sampled_from(
    ["q", "s", "/", "a", "tab", "enter", "escape", "backspace", "up", "down", "page up", "home"]
)


def pressed(*keys: str) -> View:
    view = View()
    for key in keys:
        view.press(key)
    return view


@pytest.mark.parametrize("keys", [("q",), ("ctrl-c",), ("/", "q", "ctrl-c"), ("/", "enter", "q")])
def test_it_ends(keys):
    assert pressed(*keys).ended


def test_letters_are_a_filter_while_one_is_typed():
    view = pressed("/", "q", "s", "x", "backspace")
    assert (view.filter, view.typing, view.ended) == ("qs", True, False)
    view.press("enter")
    assert (view.filter, view.typing) == ("qs", False)
    view.press("escape")
    assert view.filter == ""


def test_every_section_gets_the_focus_in_turn():
    view = View()
    seen = []
    for _ in Section:
        seen.append(view.focus)
        view.press("tab")
    assert seen == list(Section)
    assert view.focus is seen[0]


@pytest.mark.parametrize("section", Section)
def test_each_section_has_its_own_order(section):
    view = View(focus=section)
    orders = []
    for _ in SORTS[section]:
        orders.append(view.sort(section))
        view.press("s")
    assert orders == list(SORTS[section])
    assert view.sort(section) == orders[0]


def test_a_filter_does_not_mind_case_and_takes_any_name():
    view = pressed("/", *"ada", "enter")
    assert view.wants("Ben", "ADAM")
    assert not view.wants("Ben", "codex")


@given(st.lists(KEYS, max_size=200))
def test_no_keys_lead_astray(keys):
    view = pressed(*keys)
    assert view.scroll >= 0
    assert len(view.filter) <= MOST_TYPED
