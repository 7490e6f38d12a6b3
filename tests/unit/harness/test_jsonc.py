from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.harness.jsonc import NotJson, parse

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_what_json_reads_is_read_the_same(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert parse(text).data == json.loads(text)


def test_comments_and_a_trailing_comma_are_passed_over():
    text = '// a\n{"a": /* b */ 1, // c\n "b": [1, 2,], /* d\n */ }\n// e'
    assert parse(text).data == {"a": 1, "b": [1, 2]}


def test_places_are_those_of_the_text():
    text = '{"a": 1, "b": [true]}'
    node = parse(text)
    a, b = node.entries
    assert [text[each.start : each.end] for each in (a, b)] == ['"a": 1', '"b": [true]']
    assert (a.comma, b.comma) == (7, None)


def test_of_a_key_that_comes_twice_the_last_counts():
    node = parse('{"a": 1, "a": 2}')
    assert node.data == {"a": 2}
    found = node.member("a")
    assert found is not None
    assert found.value.data == 2


def test_a_large_file_is_read_by_what_is_quick_and_its_places_when_asked_for():
    text = json.dumps({"projects": [{"path": "x" * 50, "n": n} for n in range(20_000)], "z": 1})
    node = parse(text)
    assert [entry.key for entry in node.entries] == ["projects", "z"]
    projects = node.member("projects")
    assert projects is not None
    last = projects.value.entries[-1]
    assert json.loads(text[last.start : last.end])["n"] == 19_999


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1, column 1"),
        ('{"a": 1\n "b": 2}', "line 2, column 2"),
        ('{"a" 1}', "line 1, column 6"),
        ("{a: 1}", "line 1, column 2"),
        ("{,}", "line 1, column 2"),
        ('{"a": 1} x', "line 1, column 10"),
        ('{"a": [1, 2}', "line 1, column 12"),
        ('{"a": 01}', "line 1, column 8"),
        ('{"a": NaN}', "line 1, column 7"),
        ('{"a": "x', "line 1, column 7"),
        ('{"a": 1', "line 1, column 8"),
        ("[", "line 1, column 2"),
        ("/* never closed", "line 1, column 1"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused_with_the_place(text, where):
    with pytest.raises(NotJson, match=where):
        parse(text)


@given(st.text(alphabet='{}[]",:1a \n/*\\tr'))
def test_any_text_is_read_or_refused(text):
    try:
        parse(text)
    except NotJson:
        return
