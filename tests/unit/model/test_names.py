"""Names: allowed, picked, free."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.errors import InvalidArgument
from agentbus.model.names import (
    FRIENDLY,
    NAME_BYTES,
    base_name,
    check_name,
    check_new_name,
    free_name,
    one_line,
    pick_name,
)


@pytest.mark.parametrize("name", ["a", "general/tmi", "é" * 64, "Sam (tmi)", "😀", "x" * 128])
def test_ordinary_text_of_1_to_128_bytes_is_a_name(name: str) -> None:
    check_name(name, "channel")


@pytest.mark.parametrize("name", ["", "x" * 129, "é" * 65])
def test_a_name_of_another_length_is_refused_with_its_size(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"channel has {len(name.encode())} UTF-8 bytes"):
        check_name(name, "channel")


@pytest.mark.parametrize("name", ["a\nb", "\x00", "\x7f", "\u2028", "\u2029", "\x9b1m", "\ud800"])
def test_what_could_end_a_line_or_an_encoding_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check_name(name, "agent")
    assert name not in caught.value.message


def test_a_root_gets_the_same_friendly_name_while_it_is_free() -> None:
    first = pick_name("/home/me/tmi", lambda _: False)
    assert first in FRIENDLY
    assert pick_name("/home/me/tmi", lambda _: False) == first
    assert pick_name("/home/me/tmi", lambda name: name == first) != first


def test_roots_spread_over_the_names() -> None:
    assert len({pick_name(f"/r/{number}", lambda _: False) for number in range(200)}) > 60


def test_names_do_not_run_out() -> None:
    singles = set(FRIENDLY)
    double = pick_name("/r", singles.__contains__)
    assert double not in singles
    assert pick_name("/r", lambda name: not name.startswith("Agent-")) == "Agent-1"


def test_a_root_need_not_be_encodable() -> None:
    assert pick_name("/tmp/\udcff", lambda _: False) in FRIENDLY


def test_a_root_session_is_called_like_its_agent() -> None:
    assert base_name("Sam", None, "whatever") == "Sam"


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("implement804", "Sam-implement804"),
        ("fix  the\nbuild ", "Sam-fix-the-build"),
        (None, "Sam-helper"),
        ("\x00", "Sam-helper"),
        ("x" * 200, "Sam-" + "x" * 48),
        ("é" * 25, "Sam-" + "é" * 24),
    ],
)
def test_a_child_is_called_for_its_agent_and_role(role: str | None, name: str) -> None:
    assert base_name("Sam", "c", role) == name


@given(agent=st.text(min_size=1, max_size=40), role=st.text(max_size=80), taken=st.integers(0, 30))
def test_a_display_name_is_always_a_name(agent: str, role: str, taken: int) -> None:
    try:
        check_name(agent, "agent")
    except InvalidArgument:
        return
    names: set[str] = set()
    for _ in range(taken + 1):
        name = free_name(base_name(agent, "c", role), names.__contains__)
        check_name(name, "display name")
        assert name not in names
        names.add(name)


def test_the_lowest_free_number_is_taken() -> None:
    assert free_name("Sam", {"Eve"}.__contains__) == "Sam"
    assert free_name("Sam", {"Sam", "Sam3"}.__contains__) == "Sam2"
    assert free_name("Sam", {"Sam", "Sam2"}.__contains__) == "Sam3"
    assert free_name("R2D2", {"R2D2", "R2D2-2"}.__contains__) == "R2D2-3"


def test_a_long_name_makes_room_for_its_number() -> None:
    base = "x" * NAME_BYTES
    check_name(free_name(base, {base}.__contains__), "display name")


def test_a_line_that_is_cut_does_not_end_in_a_space() -> None:
    text = "x" * (NAME_BYTES - 1) + " y"
    assert one_line(text) == "x" * (NAME_BYTES - 1)


@given(text=st.text(max_size=300))
def test_anything_can_be_made_one_line(text: str) -> None:
    line = one_line(text)
    if line:
        check_name(line, "hint")
    assert one_line(line) == line
    assert line == line.strip()


def test_a_name_cannot_turn_what_follows_it() -> None:
    for character in "\u202e\u2066":
        with pytest.raises(InvalidArgument):
            check_name(f"Sam{character}", "agent")
    check_name("\u05e9\u05dc\u05d5\u05dd", "agent")


@pytest.mark.parametrize(
    "name",
    ["a", "general/tmi", "Sam (tmi)", "\u00e9", "\U0001f600", "京都", "שלום", "हिन्दी", "a-b_c.d:1"],
)
def test_a_new_name_is_of_what_can_be_seen(name: str) -> None:
    check_new_name(name, "channel")
    assert one_line(name) == name


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gen\u200beral", "U+200B (ZERO WIDTH SPACE) at 3"),
        ("gen\u200deral", "U+200D"),
        ("\ufeffgeneral", "U+FEFF"),
        ("gen\u00aderal", "U+00AD (SOFT HYPHEN)"),
        ("Sam\u061c", "U+061C"),
        ("Sam\u200f", "U+200F (RIGHT-TO-LEFT MARK)"),
        ("a\u034fb", "U+034F"),
        ("a\u3164", "U+3164 (HANGUL FILLER)"),
        ("\u2800", "U+2800"),
        ("\u2764\ufe0f", "U+FE0F"),
        ("a\U000e0041", "U+E0041"),
        ("Sam\u00a0x", "U+00A0 (NO-BREAK SPACE)"),
        ("Sam\u3000x", "U+3000"),
        ("a\ue000", "U+E000 (without a name)"),
        ("a\u0378", "U+0378"),
        (" Sam", "spaces"),
        ("Sam ", "spaces"),
        ("Sam  Two", "spaces"),
        (" ", "spaces"),
        ("\u0301a", "begins with a mark"),
        ("e\u0301", "NFC it is '\\xe9'"),
        ("\u212b", "NFC it is '\\xc5'"),
        ("a\nb", "control character"),
        ("", "0 UTF-8 bytes"),
    ],
)
def test_a_new_name_that_looks_like_another_is_refused_and_why_is_told(
    name: str, told: str
) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(told)) as caught:
        check_new_name(name, "channel")
    assert caught.value.message.isprintable()


def test_the_invisible_are_those_of_unicodes_default_ignorables() -> None:
    """As derived in DerivedCoreProperties: of categories that are otherwise seen."""
    ignorable = ["\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u3164", "\uffa0"]
    ignorable += map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10)])
    ignorable += map(
        chr, [*range(0x200B, 0x2010), *range(0x2060, 0x2070), *range(0xE0000, 0xE1000)]
    )
    for character in ignorable:
        with pytest.raises(InvalidArgument):
            check_new_name(f"a{character}b", "channel")


@given(st.text(max_size=200))
def test_what_is_made_of_a_text_is_a_new_name(text: str) -> None:
    check_new_name(one_line(text) or "x", "hint")
    check_new_name(base_name("Sam", "child", text), "display name")
