"""Who is who."""

from __future__ import annotations

from agentbus.adapter.tools.schema import (
    BOOLEAN,
    LIST,
    READS,
    SETS,
    arguments,
    members,
    name,
    text,
    texts,
)
from agentbus.wire.mcp import Tool


def whoami() -> Tool:
    """The caller's own session."""
    facts = ("display_name", "agent", "application", "session", "child", "repository")
    return Tool(
        "whoami",
        "Who am I",
        "Tells your name on the bus, your session and your subscriptions.",
        arguments({}),
        members(texts(*facts) | {"subscriptions": LIST}),
        READS,
    )


def discover() -> Tool:
    """Everybody else."""
    return Tool(
        "discover",
        "Find agents",
        "Lists agents and their sessions, the latest first, and who is attached now. more: not all "
        "fitted; name one.",
        arguments({"agent": name("only this one")}),
        members({"agents": LIST, "more": BOOLEAN}),
        READS,
    )


def bind_caller() -> Tool:
    """Not for models: a harness' hook says who makes the call that follows."""
    return Tool(
        "bind_caller",
        "For harness hooks",
        "Only for hooks of the harness; do not call it.",
        arguments(
            {
                "session_id": name(),
                "tool_use_id": name(),
                "agent_id": text(),
                "agent_type": text(),
            },
            "session_id",
            "tool_use_id",
        ),
        members({"bound": BOOLEAN}),
        SETS,
    )
