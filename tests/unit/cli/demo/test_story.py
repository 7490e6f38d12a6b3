from __future__ import annotations

import io

import pytest
from rich.console import Console

from agentbus.cli.demo.ledger import Account
from agentbus.cli.demo.story import Story, span


def told(*, terminal: bool) -> str:
    output = io.StringIO()
    console = Console(file=output, width=80, force_terminal=terminal, highlight=False)
    story = Story(console, ["Ada", "Ben"], pace=0)
    story.opening("/tmp/x")
    story.act("They talk")
    story.says("Ada", "Is [it] ready? " + "long " * 30)
    story.hears([("Ben", 0.0021)])
    story.crash("writer (pid 7)")
    story.good("all accepted")
    story.balance([Account("Ada", 1, 0, 0, 0, 0, 0), Account("Ben", 0, 1, 1, 0, 0, 0)])
    story.verdict(well=True)
    return output.getvalue()


def test_a_pipe_gets_plain_text_of_80_columns():
    text = told(terminal=False)
    assert "\x1b" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_a_terminal_gets_colours_unless_it_asks_for_none(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[36m" in told(terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[36m" not in told(terminal=True)


def test_what_was_said_and_how_long_it_took_is_told_as_it_is():
    text = told(terminal=False)
    assert "Is [it] ready?" in text
    assert "heard by Ben after 2.1 ms" in text
    assert "Nothing was lost." in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.00084, "0.8 ms"), (0.0451, "45 ms"), (1.239, "1.24 s"), (0, "0.0 ms")]
)
def test_spans_are_as_precise_as_they_are_interesting(seconds, text):
    assert span(seconds) == text
