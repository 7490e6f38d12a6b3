"""The page of the commands, from the application itself."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from typer.main import get_command

from agentbus.cli.app import app
from agentbus.cli.examples import EXAMPLES
from reference.markdown import NOTE, table

WIDTH = 100


def commands() -> str:
    """Every command, from the application itself."""
    application = get_command(app)
    parts = [NOTE.format(source="agentbus/cli"), "# Commands\n", COMMANDS]
    parts += (_command(path, command) for path, command in walk(application, ()))
    return "\n".join(parts)


def walk(command: Any, path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], Any]]:
    """Each command with the words that name it."""
    subcommands = getattr(command, "commands", None)
    if subcommands is None:
        yield path, command
    for name, subcommand in (subcommands or {}).items():
        yield from walk(subcommand, (*path, name))


def given(option: Any) -> str:
    """How an option or an argument is written on the command line."""
    if option.param_type_name == "argument":
        return option.metavar or option.name
    return ", ".join(option.opts) + (f" {option.metavar}" if option.metavar else "")


def _wrapped(text: str) -> str:
    return "\n\n".join(textwrap.fill(each, WIDTH) for each in text.split("\n\n"))


def _command(path: tuple[str, ...], command: Any) -> str:
    rows = [
        (
            f"`{given(option)}`",
            option.help or "",
        )
        for option in command.params
        if not option.hidden and "--help" not in option.opts
    ]
    text = (
        f"## `agentbus {' '.join(path)}`\n\n{_wrapped(command.help)}\n\n{_examples(' '.join(path))}"
    )
    return f"{text}\n{table(('option', 'meaning'), rows)}" if rows else text


def _examples(command: str) -> str:
    width = max(len(line) for line, _ in EXAMPLES[command])
    lines = [f"{line:{width}}  # {what}" if what else line for line, what in EXAMPLES[command]]
    return "\n".join(("```sh", *lines, "```\n"))


COMMANDS = """\
`agentbus --help` and `agentbus COMMAND --help` say the same in the terminal; `agentbus --version`
prints the version. `man agentbus` has all of it where pipx has installed the package,
and `man -l docs/reference/agentbus.1` in a checkout. `agentbus --install-completion` has your shell
(bash, zsh, fish) complete commands and options from its next start on; `agentbus --show-completion`
prints what it would add.

| exit code | means |
|---|---|
| 0 | done; for `status`: ready |
| 1 | an error; one line on stderr says its [code](errors.md) and what to do; `doctor`: a problem |
| 2 | the command line was wrong |
| 3 | `status`: nothing runs |
| 4 | `status`: it runs, but does not take messages at the moment |
| 5 | `wait`: nothing came in time |

With `--json` there is one JSON document on stdout and nothing else.
"""
