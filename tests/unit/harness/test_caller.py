from __future__ import annotations

import pytest

from agentbus.client.waiting import Session
from agentbus.errors import InvalidArgument
from agentbus.harness.caller import from_environment


@pytest.mark.parametrize(
    ("environ", "session"),
    [
        ({"CLAUDE_CODE_SESSION_ID": "c"}, Session("claude-code", "c")),
        ({"CODEX_THREAD_ID": "t"}, Session("codex", "t")),
        ({"CODEX_THREAD_ID": "t", "CODEX_SESSION_ID": "t"}, Session("codex", "t")),
        ({"CODEX_THREAD_ID": "t", "CODEX_SESSION_ID": "r"}, Session("codex", "r", "t")),
    ],
)
def test_the_session_is_the_one_that_the_harness_says(environ, session):
    assert from_environment(environ) == session


def test_where_none_says_it_the_options_are_named():
    with pytest.raises(InvalidArgument, match=r"no harness says here.*--application and --session"):
        from_environment({"CODEX_THREAD_ID": ""})


def test_one_in_the_other_is_not_guessed():
    with pytest.raises(InvalidArgument, match="several"):
        from_environment({"CLAUDE_CODE_SESSION_ID": "c", "CODEX_THREAD_ID": "t"})
