from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import pytest

from agentbus.errors import NotFound
from agentbus.harness import hook
from agentbus.runtime import rendezvous


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a hook with an input; what it says."""

    def go(said: bytes, waiting: int | Exception, *arguments: str) -> str:
        def undelivered(application, session, config):
            asked.append((application, session, config))
            if isinstance(waiting, Exception):
                raise waiting
            return waiting

        monkeypatch.setattr(hook, "undelivered", undelivered)
        stdin = SimpleNamespace(buffer=io.BytesIO(said), isatty=lambda: False)
        monkeypatch.setattr(sys, "stdin", stdin)
        assert hook.main(arguments) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        return shown.out

    asked: list[tuple[str, str, str | None]] = []
    go.asked = asked
    return go


STOP = b'{"session_id": "s", "stop_hook_active": false, "hook_event_name": "Stop", "more": {}}'


@pytest.mark.parametrize(
    ("name", "application", "decision"),
    [
        ("claude-stop", "claude-code", "block"),
        ("codex-stop", "codex", "block"),
        ("gemini-stop", "gemini-cli", "deny"),
    ],
)
def test_an_agent_is_kept_at_work_while_messages_wait(run, name, application, decision):
    answer = json.loads(run(STOP, 3, name, "--config", "/c"))
    assert answer["decision"] == decision
    assert answer["reason"].startswith("3 messages are undelivered on agentbus. Call")
    assert run.asked == [(application, "s", "/c")]


def test_one_message_is_told_as_one(run):
    assert "1 message is undelivered" in run(STOP, 1, "claude-stop")


def test_it_is_silent_where_nothing_waits(run):
    assert run(STOP, 0, "claude-stop") == ""


def test_an_agent_that_was_kept_once_may_stop_and_the_bus_is_not_even_asked(run):
    assert run(STOP.replace(b"false", b"true"), 3, "claude-stop") == ""
    assert run.asked == []


@pytest.mark.parametrize(
    "said",
    [b"", b"{", b"[]", b"{}", b'{"session_id": 3}', b"\xff", b"[" * 100_000],
)
def test_whatever_it_is_told_it_lets_the_harness_go_on(run, said):
    assert run(said, 3, "claude-stop") == ""


@pytest.mark.parametrize("problem", [NotFound("no such session"), OSError("x"), KeyError("x")])
def test_whatever_goes_wrong_it_lets_the_harness_go_on(run, problem):
    assert run(STOP, problem, "claude-stop") == ""


@pytest.mark.parametrize("arguments", [[], ["no-such-hook"], ["claude-stop", "--config"]])
def test_a_hook_that_it_does_not_know_is_silent(run, arguments):
    assert run(STOP, 0, *arguments) == ""


def test_a_person_who_runs_it_is_not_kept_waiting(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    assert hook.main(["claude-stop"]) == 0
    monkeypatch.setattr(sys, "stdin", None)
    assert hook.main(["claude-stop"]) == 0
    assert capsys.readouterr().out == ""


def test_the_conversation_is_left_for_the_adapter_beside(run, monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTBUS_RUNTIME_DIR", str(tmp_path))
    assert run(b'{"session_id": "G", "source": "startup"}', 0, "gemini-session") == ""
    (left,) = (tmp_path / "callers").iterdir()
    assert left.read_text() == "G"
    assert rendezvous.find(str(tmp_path), int(left.name)) == "G"
