"""The command line of `agentbus mcp`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentbus.adapter.main import NO_STREAMS, USAGE_ERROR, given, main, parse


def test_options_are_taken_in_both_spellings():
    assert parse(["--agent", "Ann", "--session=S=1"]) == {"agent": "Ann", "session": "S=1"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nope"],
        ["agent"],
        ["--agent"],
        ["--agent", ""],
        ["--session", "a\nb"],
        ["--application", "x" * 129],
        ["--child", "c"],
        ["--parent", "p"],
        ["--child", "c", "--parent", "p", "--session", "s"],
    ],
)
def test_a_wrong_command_line_is_told_with_the_usage(arguments, capsys):
    assert main(arguments) == USAGE_ERROR
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: agentbus mcp" in captured.err


def test_a_child_is_one_of_its_parents_conversation():
    options = {"application": "x", "child": "c", "parent": "p", "role": "tests"}
    found = given(options, {})
    assert (found.session, found.child, found.role) == ("p", "c", "tests")


def test_the_environment_tells_claude_codes_session():
    assert given({}, {"CLAUDE_CODE_SESSION_ID": "C"}).claude_session == "C"
    assert given({}, {}).claude_session is None


def test_every_adapter_has_a_session_of_its_own_to_fall_back_to():
    assert given({}, {}).fallback != given({}, {}).fallback


@pytest.mark.parametrize("closing", ["<&-", ">&-", "<&- >&-", "<&- >&- 2>&-", "<&- 2>/dev/full"])
def test_without_stdin_or_stdout_it_ends_at_once(tmp_path, closing):
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, "-m", "agentbus", "mcp"],
        env={"HOME": str(tmp_path), "AGENTBUS_RUNTIME_DIR": str(tmp_path / "run")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert (done.returncode, done.stdout) == (NO_STREAMS, "")
    if "2>" in closing:
        assert done.stderr == ""
    else:
        assert done.stderr.startswith("agentbus mcp: stdin and stdout must be open")
        assert done.stderr.count("\n") == 1


def test_faults_are_for_no_bus_in_use(monkeypatch, capsys):
    monkeypatch.setenv("AGENTBUS_TEST", '{"faults_directory": "/tmp/none"}')
    monkeypatch.delenv("AGENTBUS_RUNTIME_DIR", raising=False)
    assert main([]) == USAGE_ERROR
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "AGENTBUS_TEST" in captured.err
