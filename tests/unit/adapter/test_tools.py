"""The tools are what the contract says, and small."""

from __future__ import annotations

import pytest

from agentbus.adapter import tools
from agentbus.config import Settings
from agentbus.wire.mcp import ServerInfo, responses
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
    "search": {
        "query",
        "max_kib",
        "channels",
        "sender",
        "since",
        "until",
        "thread",
        "reply_to",
        "kind",
        "order",
        "limit",
        "cursor",
    },
    "read": {"message_id", "offset", "max_kib"},
    "memory_get": {"memory_id"},
    "memory_list": {"channel", "limit", "cursor"},
    "memory_edit": {
        "memory_id",
        "content",
        "type",
        "metadata",
        "references",
        "operation_id",
    },
    "memory_delete": {"memory_id", "operation_id"},
    "discover": {"agent"},
    "bind_caller": {"session_id", "tool_use_id", "agent_id", "agent_type"},
}

RESULTS = {
    "send": {"message_id", "seq", "sent_at", "duplicate", "memory_id", "revision"},
    "recv": {"messages", "gaps", "expired", "notices", "dropped_notices", "more"},
    "search": {"results", "next_cursor"},
    "history": {"messages", "more"},
    "memory_edit": {"memory_id", "revision", "replaced_revision", "duplicate"},
    "memory_delete": {"memory_id", "deleted_revision", "duplicate"},
    "memory_list": {"memories", "next_cursor"},
    "unsubscribe": {"channel", "removed"},
    "create_channel": {"channel", "kind", "created"},
    "list_channels": {"channels", "next_cursor"},
    "bind_caller": {"bound"},
}
"""Those that have these members and no others."""


def test_the_tools_and_their_arguments_are_the_contracts():
    assert {tool.name: set(tool.input_schema["properties"]) for tool in TABLE} == ARGUMENTS


def test_their_results_are_the_contracts():
    shown = {tool.name: set(tool.output_schema["properties"]) for tool in TABLE}
    assert {name: shown[name] for name in RESULTS} == RESULTS


@pytest.mark.parametrize("revision", [*HANDSHAKE, *MODERN], ids=lambda each: each.name)
def test_the_list_stays_under_twelve_kib(revision):
    info = ServerInfo("agentbus", "agentbus", "0.10.0", tools.INSTRUCTIONS)
    settings = Settings(recv_max_count=10_000, recv_max_wait_seconds=300)
    result = responses.tool_list(info, tools.table(settings), revision)
    assert len(responses.response("an id of the client's", result)) < 12 * 1024


def test_the_instructions_stay_under_two_kib_and_name_tools_that_there_are():
    assert len(tools.INSTRUCTIONS.encode()) < 2 * 1024
    for name in ("recv", "send", "search", "memory_edit", "memory_list", "references"):
        assert name in tools.INSTRUCTIONS


@pytest.mark.parametrize(
    "said",
    [
        "secrets travel by reference",
        "not orders",
        "each message once",
        "retryable",
        "keep content short",
    ],
)
def test_the_instructions_say_what_an_agent_has_to_know(said):
    assert said in " ".join(tools.INSTRUCTIONS.split()).lower()


def arrays(schema):
    """All schemas of arrays in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "array":
            yield schema
        for each in schema.values():
            yield from arrays(each)


@pytest.mark.parametrize("tool", TABLE, ids=lambda tool: tool.name)
def test_lists_of_arguments_say_what_is_in_them(tool):
    """Some model APIs refuse tools where they do not."""
    assert all("items" in each for each in arrays(tool.input_schema))


def test_models_are_told_to_leave_the_hooks_tool_alone():
    bind = next(tool for tool in TABLE if tool.name == "bind_caller")
    assert "do not call" in bind.description


@pytest.mark.parametrize(
    ("name", "hints"),
    [
        ("search", {"readOnlyHint": True}),
        ("read", {"readOnlyHint": True}),
        ("memory_list", {"readOnlyHint": True}),
        ("memory_edit", {"destructiveHint": True}),
        ("memory_delete", {"destructiveHint": True, "idempotentHint": True}),
        ("send", {"destructiveHint": False}),
    ],
)
def test_annotations_tell_what_a_tool_may_do(name, hints):
    tool = next(tool for tool in TABLE if tool.name == name)
    assert tool.annotations == hints | {"openWorldHint": False}


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


@pytest.mark.parametrize("tool", TABLE, ids=lambda tool: tool.name)
def test_a_failure_fits_the_schema_of_results_against_which_some_clients_hold_it(tool):
    assert tool.output_schema is not None
    assert "required" not in tool.output_schema
    assert "additionalProperties" not in tool.output_schema
    assert "error" not in tool.output_schema["properties"]


def test_the_limits_shown_are_the_users_settings():
    table = tools.table(Settings(recv_max_count=7, recv_max_wait_seconds=3, recv_default_count=2))
    recv = next(tool for tool in table if tool.name == "recv").input_schema["properties"]
    assert recv["max_messages"]["maximum"] == 7
    assert recv["wait_seconds"]["maximum"] == 3
