from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.harness.json_edit import MISSING, NotEditable, append, drop, get, put
from agentbus.harness.jsonc import parse

PATH = ("mcpServers", "agentbus")
VALUE = {"command": "agentbus", "args": ["mcp"]}

TEXTS = [
    "{}",
    "{}\n",
    "{\n}\n",
    '{"a":1}',
    '{"a": 1, "b": 2}\n',
    '{\n  "a": 1\n}\n',
    '{\n    "a": {\n        "b": [1, 2]\n    }\n}',
    '{\n\t"a": 1, // why\n\t"b": 2 // and this\n}\n',
    '{\n  "a": 1, /* trailing */\n}\n',
    "{\n  // only a comment\n}\n",
    '{\n  "mcpServers": {\n    "x": {"command": "y"} // mine\n  }, // all\n}\n',
    '{"mcpServers": {"x": {}}}',
    '{"a":1 // one line\n}',
    '{"a":1, // one line\n}',
    '{"mcpServers": {"x": {} // one line\n}}\n',
]


def inner(text: str) -> str:
    """What people wrote: without blanks and the commas that an edit may need."""
    return "".join(text.split()).replace(",", "")


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_put_in_and_taken_out_leaves_the_rest(text):
    made = put(text, PATH, VALUE)
    assert parse(made).data == {
        **parse(text).data,
        "mcpServers": {**parse(text).data.get("mcpServers", {}), "agentbus": VALUE},
    }
    left = drop(made, PATH)
    if "mcpServers" not in parse(text).data:
        left = drop(left, ("mcpServers",))
    assert parse(left).data == parse(text).data
    assert inner(left) == inner(text)


@pytest.mark.parametrize("text", TEXTS)
def test_comments_stay_through_an_edit(text):
    comments = [part.strip() for part in text.splitlines() if "//" in part or "/*" in part]
    made = append(put(text, PATH, VALUE), ("hooks", "Stop"), {"hooks": []})
    for comment in comments:
        words = comment[comment.index("/") :].rstrip(" ,")
        assert words in made


def test_it_is_written_as_the_rest_is():
    assert (
        put('{\n\t"a": 1\n}\n', ("b",), {"c": 2}) == '{\n\t"a": 1,\n\t"b": {\n\t\t"c": 2\n\t}\n}\n'
    )
    assert put('{"a": 1}', ("b",), {"c": 2}) == '{"a": 1, "b": {"c": 2}}'
    assert put("{}\n", ("b",), [1]) == '{\n  "b": [\n    1\n  ]\n}\n'


def test_a_value_is_replaced_where_it_stands():
    assert put('{"a": 1, "b": 2}', ("a",), [3]) == '{"a": [\n  3\n], "b": 2}'
    assert put('{"a": {"b": 1}}', ("a", "b"), "x") == '{"a": {"b": "x"}}'


def test_the_comma_of_a_line_with_a_comment_stands_before_it():
    assert put('{\n  "a": 1 // one\n}', ("b",), 2) == '{\n  "a": 1, // one\n  "b": 2\n}'


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ('{"a": 1, "b": 2, "c": 3}', ("b",), '{"a": 1, "c": 3}'),
        ('{"a": 1, "b": 2}', ("b",), '{"a": 1}'),
        ('{"a": 1, "b": 2}', ("a",), '{ "b": 2}'),
        ('{"a": [1, 2, 3]}', ("a", 1), '{"a": [1, 3]}'),
        ('{\n  "a": 1,\n  // of b\n  "b": 2\n}', ("b",), '{\n  "a": 1\n  // of b\n}'),
        ('{\n  "a": 1,\n}', ("a",), "{}"),
    ],
)
def test_what_is_dropped_takes_its_comma_along(text, path, left):
    assert drop(text, path) == left


def test_a_path_through_something_else_is_refused():
    with pytest.raises(NotEditable, match="mcpServers is not an object"):
        put('{"mcpServers": []}', PATH, VALUE)
    with pytest.raises(NotEditable, match="the file is not an object"):
        put("[]", PATH, VALUE)
    with pytest.raises(NotEditable, match="hooks is not a list"):
        append('{"hooks": 1}', ("hooks",), 1)
    with pytest.raises(NotEditable, match="not there"):
        drop('{"a": 1}', ("b",))


def test_what_is_not_there_is_missing():
    assert get('{"a": [1]}', ("a", 1)) is MISSING
    assert get('{"a": [1]}', ("a", "b")) is MISSING
    assert get('{"a": [1]}', ("a", 0)) == 1


DOCUMENTS = st.dictionaries(st.text(), st.integers() | st.lists(st.integers()), max_size=4)


@given(DOCUMENTS, st.text(), st.sampled_from([None, 1, 4, "\t"]))
def test_putting_and_dropping_gives_the_data_back(document, key, indent):
    text = json.dumps(document, indent=indent)
    made = put(text, (key,), {"x": [1]})
    assert parse(made).data == {**document, key: {"x": [1]}}
    rest = {name: value for name, value in document.items() if name != key}
    assert parse(drop(made, (key,))).data == rest
