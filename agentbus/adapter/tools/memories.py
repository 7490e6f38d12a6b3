"""Memories: what stays until somebody deletes it."""

from __future__ import annotations

from agentbus.adapter.tools.schema import (
    ALTERS,
    BOOLEAN,
    INTEGER,
    LIST,
    READS,
    REMOVES,
    arguments,
    limit,
    many,
    members,
    name,
    text,
    texts,
)
from agentbus.wire.mcp import Tool


def memory_get() -> Tool:
    """One."""
    return Tool(
        "memory_get",
        "Get a memory",
        "Returns the current revision of a memory.",
        arguments({"memory_id": name()}, "memory_id"),
        members(texts("memory_id", "content") | {"revision": INTEGER}),
        READS,
    )


def memory_list() -> Tool:
    """All of a channel, by pages."""
    return Tool(
        "memory_list",
        "List memories",
        "Lists the current memories of a memory channel, oldest first.",
        arguments({"channel": name(), "limit": limit(), "cursor": text()}, "channel"),
        members({"memories": LIST, "next_cursor": text()}),
        READS,
    )


def memory_edit() -> Tool:
    """The last one wins, and sees whom it has replaced."""
    return Tool(
        "memory_edit",
        "Edit a memory",
        "Replaces a memory's content. The last edit wins: where replaced_revision is not the one "
        "you read, you have replaced somebody else's. type, metadata, references (as in send) stay "
        "unless given; empty ones are cleared.",
        arguments(
            {
                "memory_id": name(),
                "content": text(),
                "type": text(),
                "metadata": {"type": "object"},
                "references": many({"type": "object"}),
                "operation_id": name("only for retries"),
            },
            "memory_id",
            "content",
        ),
        _changed("revision", "replaced_revision"),
        ALTERS,
    )


def memory_delete() -> Tool:
    """For good."""
    return Tool(
        "memory_delete",
        "Delete a memory",
        "Deletes a memory for everybody; subscribers are told.",
        arguments({"memory_id": name(), "operation_id": name("only for retries")}, "memory_id"),
        _changed("deleted_revision"),
        REMOVES,
    )


def _changed(*revisions: str) -> dict[str, object]:
    numbers = dict.fromkeys(revisions, INTEGER)
    return members(texts("memory_id") | numbers | {"duplicate": BOOLEAN})
