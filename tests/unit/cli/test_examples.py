"""The examples of the help are commands that there are."""

from __future__ import annotations

import shlex

import pytest
from typer.main import get_command

from agentbus.cli.app import app, main
from agentbus.cli.examples import EXAMPLES


def commands(command=None, path=()):
    found = get_command(app) if command is None else command
    if not hasattr(found, "commands"):
        yield " ".join(path), found
        return
    for name, each in found.commands.items():
        yield from commands(each, (*path, name))


COMMANDS = dict(commands())


def test_every_command_has_examples_and_no_other_has():
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_of_the_command_with_options_that_it_has(name):
    command = COMMANDS[name]
    options = {option for each in command.params for option in each.opts}
    for line, _ in EXAMPLES[name]:
        [ours] = [part for part in line.split("|") if "agentbus" in part]
        words = shlex.split(ours.split(">")[0])
        assert words[: 1 + len(name.split())] == ["agentbus", *name.split()]
        given = [word for word in words if word.startswith("-") and word != "-1"]
        assert [word for word in given if word not in options] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_each_on_a_line_of_its_own(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERMINAL_WIDTH", "120")
    assert main([*name.split(), "--help"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "Examples:" in lines
    for line, _ in EXAMPLES[name]:
        assert any(shown.startswith(line) for shown in lines), line
