"""The tools are what the contract says, and small."""

from __future__ import annotations

import msgspec
import pytest

from agentbus.adapter import tools
from agentbus.config import Settings
from agentbus.wire.mcp.catalogue import describe
from agentbus.wire.mcp.revisions import HANDSHAKE, MODERN

TABLE = tools.table(Settings())

ARGUMENTS = {
    "whoami": set(),
    "list_channels": {"limit", "cursor"},
    "create_channel": {"name", "kind"},
    "subscribe": {"channel", "include_own"},
    "unsubscribe": {"channel"},
    "send": {
        "channel",
        "content",
        "type",
        "reply_to",
        "metadata",
        "references",
        "message_id",
    },
    "recv": {"max_messages", "wait_seconds", "max_kib"},
    "history": {"channel", "before", "after", "limit", "max_kib"},
}


def test_the_tools_and_their_arguments_are_the_contracts():
    assert {tool.name: set(tool.input_schema["properties"]) for tool in TABLE} == ARGUMENTS


@pytest.mark.parametrize("revision", [*HANDSHAKE, *MODERN], ids=lambda each: each.name)
def test_the_list_stays_under_twelve_kib(revision):
    assert len(msgspec.json.encode(describe(TABLE, revision))) < 8 * 1024


def test_only_send_and_recv_are_always_loaded():
    loaded = {tool.name for tool in TABLE if tool.meta == {"anthropic/alwaysLoad": True}}
    assert loaded == {"send", "recv"}
    assert all(tool.meta is None for tool in TABLE if tool.name not in loaded)


@pytest.mark.parametrize("tool", TABLE, ids=lambda tool: tool.name)
def test_a_tool_has_a_title_a_text_and_strict_arguments(tool):
    assert tool.title
    assert tool.description.endswith(".")
    assert tool.input_schema["additionalProperties"] is False
    assert tool.annotations["openWorldHint"] is False


def test_the_limits_shown_are_the_users_settings():
    table = tools.table(Settings(recv_max_count=7, recv_max_wait_seconds=3, recv_default_count=2))
    recv = next(tool for tool in table if tool.name == "recv").input_schema["properties"]
    assert recv["max_messages"]["maximum"] == 7
    assert recv["wait_seconds"]["maximum"] == 3
