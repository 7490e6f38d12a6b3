from __future__ import annotations

import os

import pytest

from agentbus.client.waiting import Session
from agentbus.errors import InvalidArgument
from agentbus.harness.caller import find_session
from agentbus.runtime import rendezvous


@pytest.mark.parametrize(
    ("environ", "session"),
    [
        ({"CLAUDE_CODE_SESSION_ID": "c"}, Session("claude-code", "c")),
        ({"CODEX_THREAD_ID": "t"}, Session("codex", "t")),
        ({"CODEX_THREAD_ID": "t", "CODEX_SESSION_ID": "t"}, Session("codex", "t")),
        ({"CODEX_THREAD_ID": "t", "CODEX_SESSION_ID": "r"}, Session("codex", "r", "t")),
        ({"OPENCODE_AGENTBUS_SESSION": "o"}, Session("opencode", "o")),
        (
            {"OPENCODE_AGENTBUS_SESSION": "o", "OPENCODE_AGENTBUS_CHILD": "c"},
            Session("opencode", "o", "c"),
        ),
    ],
)
def test_the_session_is_the_one_that_the_harness_says(tmp_path, environ, session):
    assert find_session(environ, str(tmp_path)) == session


def test_where_none_says_it_the_options_are_named(tmp_path):
    with pytest.raises(InvalidArgument, match=r"no harness says here.*--application and --session"):
        find_session({"CODEX_THREAD_ID": ""}, str(tmp_path))


def test_one_in_the_other_is_not_guessed(tmp_path):
    with pytest.raises(InvalidArgument, match="several"):
        find_session({"CLAUDE_CODE_SESSION_ID": "c", "CODEX_THREAD_ID": "t"}, str(tmp_path))


def test_what_a_hook_left_for_a_process_above_is_found(tmp_path):
    rendezvous.leave(str(tmp_path), os.getppid(), "G")
    assert find_session({}, str(tmp_path)) == Session("gemini-cli", "G")
