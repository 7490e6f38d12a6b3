"""Any file, changed and changed back."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.harness.changes import JsonHooks, JsonServer, TomlServer, applied, undone
from agentbus.harness.json_edit import NotEditable
from agentbus.harness.jsonc import parse

ENTRY = {"command": "/opt/agentbus", "args": ["mcp"]}
GROUP = {"hooks": [{"type": "command", "command": "/opt/agentbus hook claude-stop"}]}
CHANGES = (JsonServer("mcpServers", ENTRY), JsonHooks("Stop", GROUP))

NAMES = st.text(min_size=1, max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
HOOKS = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["say x", "y"])}
)
GROUPS = st.lists(st.fixed_dictionaries({"hooks": st.lists(HOOKS, max_size=2)}), max_size=2)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "mcpServers": st.dictionaries(NAMES, VALUES, max_size=2),
        "hooks": st.fixed_dictionaries({}, optional={"Stop": GROUPS, "Other": GROUPS}),
        "model": VALUES,
    },
)


@given(FILES, st.sampled_from([None, 2, "\t"]))
def test_json_holds_what_it_held_and_what_is_ours_and_then_what_it_held(document, indent):
    text = json.dumps(document, indent=indent)
    made = applied(CHANGES, text)
    assert made is not None
    held = parse(made).data
    assert held["mcpServers"].pop("agentbus") == ENTRY
    assert held["hooks"]["Stop"].pop() == GROUP
    assert held["mcpServers"] == document.get("mcpServers", {})
    assert held.get("model") == document.get("model")
    assert applied(CHANGES, made) == made
    left = undone(CHANGES, made, text)
    assert left is not None
    assert parse(left).data == document


@given(st.dictionaries(st.from_regex(r"[a-z]{1,4}", fullmatch=True), st.integers() | st.text()))
def test_toml_holds_what_it_held(table):
    change = TomlServer("mcp_servers", ENTRY)
    lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items())
    text = "[x]\n" + "".join(line.replace("\x7f", "\\u007f") for line in lines)
    made = change.apply(text)
    assert made is not None
    assert tomllib.loads(made) == {**tomllib.loads(text), "mcp_servers": {"agentbus": ENTRY}}
    assert change.apply(made) == made
    assert change.undo(made, text) == text


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "agentbus", "args": ["mcp"]},
        {"command": "/x/python", "args": ["-m", "agentbus", "mcp", "--agent", "Sam"]},
        {"command": "uvx", "args": ["--from", "agentbus-local", "agentbus", "mcp"]},
        {"type": "local", "command": ["agentbus", "mcp"]},
    ],
)
def test_an_entry_is_ours_however_it_starts_the_program(entry):
    text = json.dumps({"mcpServers": {"agentbus": entry}})
    assert JsonServer("mcpServers", ENTRY).is_there(text)
    made = JsonServer("mcpServers", ENTRY).apply(text)
    assert made is not None
    assert parse(made).data["mcpServers"]["agentbus"]["command"] == "/opt/agentbus"


@pytest.mark.parametrize(
    "entry", [None, 3, [], {"command": 3}, {"command": "agentbus"}, {"args": 1}]
)
def test_what_starts_something_else_is_not(entry):
    text = json.dumps({"mcpServers": {"agentbus": entry}})
    assert not JsonServer("mcpServers", ENTRY).is_there(text)
    with pytest.raises(NotEditable):
        JsonServer("mcpServers", ENTRY).apply(text)


@pytest.mark.parametrize(
    "groups", [[3], ["x"], [{"hooks": 3}], [{"hooks": [3, {"type": "x"}]}], [{}]]
)
def test_hooks_of_others_need_not_be_understood(groups):
    text = json.dumps({"hooks": {"Stop": groups}})
    change = JsonHooks("Stop", GROUP)
    made = change.apply(text)
    assert made is not None
    assert parse(made).data == {"hooks": {"Stop": [*groups, GROUP]}}
    assert change.undo(made, text) is not None
    assert parse(change.undo(made, text) or "").data == parse(text).data
