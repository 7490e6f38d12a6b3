"""What is seen of ours in the files of harnesses."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentbus.harness import connect
from agentbus.harness.programs import HARNESSES, NAMES, Machine, Start
from agentbus.harness.record import locked
from agentbus.harness.state import look, states

START = Start(["/opt/bin/agentbus"], ["--config", "/c"], {"AGENTBUS_RUNTIME_DIR": "/r"})
EACH = pytest.mark.parametrize("harness", HARNESSES, ids=NAMES)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(str(tmp_path))


@EACH
def test_where_nothing_of_ours_is_it_is_missed(harness, machine):
    state = look(harness, machine, START)
    assert (state.entry, state.error) == (None, None)
    assert state.lacking


@EACH
def test_what_init_has_put_there_is_found_whole(harness, machine):
    targets = harness.targets(machine, START)
    with locked(connect.record_directory(machine)) as record:
        assert connect.connect(harness.name, targets, record, dry=False).error is None
    [state] = states(machine, START)
    assert state.name == harness.name
    assert (state.lacking, state.error) == ([], None)
    assert state.entry is not None
    assert state.entry.words == START.words
    assert state.entry.option("--config") == "/c"
    assert state.entry.variables == START.variables
    assert not state.entry.disabled


@EACH
def test_an_empty_file_is_none_and_one_that_cannot_be_read_is_told(harness, machine):
    [first, *_] = harness.targets(machine, START)
    path = Path(first.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n")
    assert look(harness, machine, START).entry is None
    path.write_text('{"s3cret = [')
    error = look(harness, machine, START).error
    assert error is not None
    assert str(path) in error.message
    assert "s3cret" not in error.message


@pytest.mark.parametrize(
    ("text", "words", "disabled"),
    [
        ('{"command": "agentbus", "args": ["mcp"]}', ["agentbus", "mcp"], False),
        ('{"command": ["agentbus", "mcp"], "enabled": false}', ["agentbus", "mcp"], True),
        ('{"command": "agentbus", "args": ["mcp"], "env": 7}', ["agentbus", "mcp"], False),
        ('{"command": "other", "args": ["mcp"]}', None, False),
        ("7", None, False),
    ],
)
def test_entries_of_all_kinds_are_read(machine, text, words, disabled):
    [claude] = [each for each in HARNESSES if each.name == "claude-code"]
    Path(machine.home, ".claude.json").write_text(f'{{"mcpServers": {{"agentbus": {text}}}}}')
    entry = look(claude, machine, START).entry
    assert (entry and entry.words) == words
    assert bool(entry and entry.disabled) is disabled
