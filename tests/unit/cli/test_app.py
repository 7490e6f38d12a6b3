from __future__ import annotations

import pytest

from agentbus import __version__
from agentbus.cli import app as cli
from agentbus.cli.app import app, main
from agentbus.errors import RedisMissing


@pytest.fixture
def command(monkeypatch):
    """Replaces what `agentbus stop` does."""

    def replace(function):
        monkeypatch.setattr("agentbus.client.admin.stop", function)

    return replace


def test_every_command_of_the_contract_is_there():
    names = {command.name for command in app.registered_commands}
    groups = {group.name for group in app.registered_groups}
    assert names >= {"mcp", "daemon", "status", "stop", "demo"}
    assert groups == {"config"}


def test_help_names_every_command_with_a_sentence(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for command in app.registered_commands:
        assert f" {command.name} " in text
        assert command.callback is not None
        assert command.callback.__doc__


def test_without_arguments_there_is_help_and_a_usage_error(capsys):
    assert main([]) == 2
    assert "Usage: agentbus" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["status", "--nonsense"], ["status", "extra"], ["config", "nothing"]],
)
def test_a_wrong_command_line_is_a_usage_error_and_prints_nothing_on_stdout(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().out == ""


def test_the_version_is_one_line(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"agentbus {__version__}\n"


def test_an_error_is_one_line_on_stderr_with_its_code(command, capsys):
    def refuse(*_):
        raise RedisMissing("no server found;\ninstall one: apt install redis-server")

    command(refuse)
    assert main(["stop"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "agentbus: redis_missing: no server found; install one: apt install redis-server\n"
    )


def test_a_bad_configuration_is_such_an_error(tmp_path, capsys):
    assert main(["stop", "--config", str(tmp_path / "none.json")]) == 1
    assert capsys.readouterr().err.startswith("agentbus: config_invalid: ")


def test_what_nobody_foresaw_is_not_hidden(command):
    def break_down(*_):
        raise ZeroDivisionError

    command(break_down)
    with pytest.raises(ZeroDivisionError):
        cli.main(["stop"])


@pytest.mark.parametrize("command", app.registered_commands, ids=lambda each: each.name)
def test_help_is_wrapped_as_the_terminal_is_wide_only(command):
    assert command.help
    assert all("\n" not in paragraph for paragraph in command.help.split("\n\n"))
