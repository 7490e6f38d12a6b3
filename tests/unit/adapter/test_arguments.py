"""Arguments are as the shown schema says, or the error names what is allowed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agentbus.adapter import tools
from agentbus.adapter.arguments import check
from agentbus.config import Settings
from agentbus.errors import InvalidArgument

TOOLS = {tool.name: tool for tool in tools.table(Settings())}


def refused(name: str, /, **arguments: object) -> str:
    with pytest.raises(InvalidArgument) as raised:
        check(TOOLS[name], arguments)
    return raised.value.message


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "recv",
            {"max_messages": 0},
            "recv: max_messages is 0; allowed is a whole number from 1 to 1000",
        ),
        (
            "recv",
            {"max_messages": 1001},
            "recv: max_messages is 1001; allowed is a whole number from 1 to 1000",
        ),
        (
            "recv",
            {"max_messages": True},
            "recv: max_messages is true; allowed is a whole number from 1 to 1000",
        ),
        (
            "recv",
            {"wait_seconds": 60.5},
            "recv: wait_seconds is 60.5; allowed is a number from 0 to 60",
        ),
        (
            "recv",
            {"wait_seconds": "5"},
            'recv: wait_seconds is "5"; allowed is a number from 0 to 60',
        ),
        (
            "recv",
            {"max_kib": 3},
            "recv: max_kib is 3; allowed is a whole number from 4 to 4096",
        ),
        (
            "recv",
            {"timeout": 1},
            "recv: there is no argument timeout; allowed: max_messages, wait_seconds, max_kib",
        ),
        ("whoami", {"x": 1}, "whoami: there is no argument x; allowed: none"),
        ("send", {"channel": "c"}, "send: content is missing; it is a string"),
        (
            "send",
            {"channel": "", "content": ""},
            'send: channel is ""; allowed is a string of 1 to 128 bytes without control characters',
        ),
        (
            "send",
            {"channel": "c", "content": None},
            "send: content is null; allowed is a string",
        ),
        (
            "send",
            {"channel": "c", "content": "", "metadata": {"a": {"b": 1}}},
            'send: metadata.a is {"b":1}; allowed is a string, a number, true, false or null',
        ),
        (
            "send",
            {"channel": "c", "content": "", "references": [{"kind": "file", "value": "x"}]},
            'send: references[0].kind is "file"; allowed is "url" or "unix_path" or "windows_path"',
        ),
        (
            "send",
            {"channel": "c", "content": "", "references": [{"kind": "url"}]},
            "send: references[0].value is missing; it is a string",
        ),
        (
            "send",
            {"channel": "c", "content": "", "references": "x"},
            'send: references is "x"; allowed is a list',
        ),
        (
            "create_channel",
            {"name": "c", "kind": "memories"},
            'create_channel: kind is "memories"; allowed is "ordinary" or "memory"',
        ),
        (
            "history",
            {"channel": "c", "before": 0},
            "history: before is 0; allowed is a whole number from 1 up",
        ),
    ],
)
def test_an_error_names_the_argument_the_value_and_what_is_allowed(name, arguments, message):
    assert refused(name, **arguments) == message


@pytest.mark.parametrize("letter", ["\n", "\x00", "\x7f", "\x85"])
def test_names_have_no_control_characters(letter):
    assert "control characters" in refused("send", channel=f"a{letter}", content="")


def test_names_are_measured_in_bytes():
    assert check(TOOLS["subscribe"], {"channel": "é" * 64})
    assert "128 bytes" in refused("subscribe", channel="é" * 65)


def test_a_long_value_is_shown_shortened():
    assert len(refused("recv", max_messages="x" * 5000)) < 200
    assert len(refused("recv", **{"y" * 5000: 1})) < 200


def test_null_is_left_out_where_an_argument_is_optional():
    given = {"channel": "c", "content": "", "reply_to": None, "metadata": None}
    assert check(TOOLS["send"], given) == {"channel": "c", "content": ""}


def test_whole_numbers_may_be_written_as_fractions():
    assert check(TOOLS["recv"], {"max_messages": 5.0})
    refused("recv", max_messages=5.5)


def test_content_may_be_anything_that_is_text():
    check(TOOLS["send"], {"channel": "c", "content": "\x00\n" * 100_000})


scalars = st.none() | st.booleans() | st.integers(-5, 5000) | st.text(max_size=5)
values = scalars | st.floats(0, 100) | st.lists(scalars, max_size=2)


@given(st.sampled_from(sorted(TOOLS)), st.data())
def test_what_passes_is_what_the_schema_allows(name, data):
    tool = TOOLS[name]
    names = [*tool.input_schema["properties"], "other"]
    arguments = data.draw(st.dictionaries(st.sampled_from(names), values, max_size=4))
    try:
        passed = check(tool, arguments)
    except InvalidArgument:
        return
    schema = msgspec.json.decode(msgspec.json.encode(tool.input_schema))
    Draft202012Validator(schema).validate(passed)
