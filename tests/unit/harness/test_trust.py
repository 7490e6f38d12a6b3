"""Which hooks Codex runs, as its real program was seen to decide."""

from __future__ import annotations

import pytest

from agentbus.harness.changes import JsonHooks
from agentbus.harness.trust import is_trusted

STOP = JsonHooks("Stop", {"hooks": [{"type": "command", "command": "/b/agentbus hook codex-stop"}]})
ALONE = STOP.apply(None)
BEHIND = STOP.apply('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "bell"}]}]}}')
TRUSTED = 'trusted_hash = "sha256:1"'


def state(place: str, content: str) -> str:
    return f'[hooks.state."/h/hooks.json:{place}"]\n{content}\n'


@pytest.mark.parametrize(
    ("settings", "hooks", "trusted"),
    [
        (None, ALONE, False),
        ("model = 'x'", ALONE, False),
        (state("stop:0:0", TRUSTED), ALONE, True),
        (state("stop:0:0", TRUSTED), BEHIND, False),
        (state("stop:1:0", TRUSTED), BEHIND, True),
        (state("stop:0:0", f"{TRUSTED}\nenabled = false"), ALONE, False),
        (state("stop:0:0", "enabled = true"), ALONE, False),
        (state("session_start:0:0", TRUSTED), ALONE, False),
        ("[hooks]\nstate = 7", ALONE, False),
        (None, None, True),
    ],
)
def test_a_hook_is_trusted_where_it_stands(settings, hooks, trusted):
    assert is_trusted(settings, "/h/hooks.json", hooks, STOP) is trusted


def test_events_of_several_words_and_homes_that_are_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    change = JsonHooks("SessionStart", STOP.group)
    hooks = change.apply(None)
    settings = f'[hooks.state."{tmp_path}/real/hooks.json:session_start:0:0"]\n{TRUSTED}\n'
    assert is_trusted(settings, f"{tmp_path}/link/hooks.json", hooks, change)
