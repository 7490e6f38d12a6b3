"""The manual page, from the application itself, in the macros of man(7)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from typer.main import get_command

from agentbus import __version__
from agentbus.cli.app import app
from agentbus.cli.examples import EXAMPLES
from agentbus.runtime import exits
from reference.commands import given, walk


def man_page() -> str:
    """agentbus(1)."""
    application = get_command(app)
    lines = [
        '.\\" Made by `python -m reference` in contrib/ from agentbus/cli; change that, not this.',
        f'.TH AGENTBUS 1 "" "agentbus {__version__}"',
        ".SH NAME",
        _text("agentbus - a local message bus and shared memory for coding agents"),
        ".SH SYNOPSIS",
        ".B agentbus",
        ".I COMMAND",
        _text("[options]"),
        ".SH COMMANDS",
    ]
    for path, command in walk(application, ()):
        lines += _command(" ".join(path), command)
    return "\n".join([*lines, *_rest()]) + "\n"


def _command(name: str, command: Any) -> Iterable[str]:
    yield f'.SS "agentbus {name}"'
    for number, paragraph in enumerate((command.help or "").strip().split("\n\n")):
        if number:
            yield ".PP"
        yield _text(" ".join(paragraph.split()))
    for option in command.params:
        if not option.hidden and "--help" not in option.opts:
            yield f".TP\n.B {_text(given(option))}"
            yield _text(option.help or given(option))
    yield ".PP\nExamples:\n.PP\n.nf\n.RS"
    for line, what in EXAMPLES[name]:
        yield _text(f"{line}   # {what}" if what else line)
    yield ".RE\n.fi"


def _rest() -> Iterable[str]:
    codes = (
        (exits.OK, "Done; of status: ready."),
        (exits.FAILED, "An error, told on stderr; of doctor: a problem."),
        (exits.USAGE, "The command line was wrong."),
        (exits.NOT_RUNNING, "status: nothing runs."),
        (exits.NOT_READY, "status: it runs, but does not take messages at the moment."),
        (exits.TIMED_OUT, "wait: nothing came in time."),
    )
    files = (
        ("~/.config/agentbus/config.json", "Settings; AGENTBUS_CONFIG names another file."),
        ("~/.local/state/agentbus", "Socket and locks; AGENTBUS_RUNTIME_DIR names another place."),
        ("~/.local/share/agentbus", "Database, Redis' snapshot, search index, logs."),
    )
    yield ".SH EXIT STATUS"
    for code, meaning in codes:
        yield f".TP\n.B {code}\n{_text(meaning)}"
    yield ".SH FILES"
    for path, meaning in files:
        yield f".TP\n.I {_text(path)}\n{_text(meaning)}"


def _text(text: str) -> str:
    """As it is read: no macro, no hyphen where a minus stands, no backquotes of markdown."""
    plain = re.sub(r"`([^`]*)`", r"\1", text).replace("\\", "\\e").replace("-", "\\-")
    plain = plain.replace("'", "\\(aq")
    return f"\\&{plain}" if plain.startswith(".") else plain
