"""Sending and receiving, and looking back."""

from __future__ import annotations

from typing import Final

from agentbus.adapter.tools.schema import (
    ADDS,
    BOOLEAN,
    INTEGER,
    KIND,
    LIST,
    METADATA,
    READS,
    REFERENCES,
    arguments,
    limit,
    many,
    max_kib,
    members,
    name,
    text,
    texts,
    whole,
)
from agentbus.config import Settings
from agentbus.wire.mcp import Tool

ALWAYS_LOAD: Final = {"anthropic/alwaysLoad": True}
"""Claude Code hides tools behind a search unless they say this."""


def send() -> Tool:
    """The one that everybody needs first."""
    return Tool(
        "send",
        "Send a message",
        "Posts a message to a channel; in a memory channel it is a new memory. When it returns, "
        "it is stored and on its way to all subscribers. To retry after an error, pass the same "
        "message_id: it is never posted twice.",
        arguments(
            {
                "channel": name(),
                "content": text(),
                "type": name('what it is, such as "question"; default "message"'),
                "reply_to": name("message_id of what this answers"),
                "metadata": METADATA,
                "references": REFERENCES,
                "message_id": name("only for retries"),
            },
            "channel",
            "content",
        ),
        members(
            texts("message_id", "sent_at", "memory_id")
            | {"seq": INTEGER, "duplicate": BOOLEAN, "revision": INTEGER},
        ),
        ADDS,
        ALWAYS_LOAD,
    )


def recv(settings: Settings) -> Tool:
    """The other one; its bounds are settings."""
    seconds = {
        "type": "number",
        "minimum": 0,
        "maximum": settings.recv_max_wait_seconds,
        "description": "wait for a message if there is none; default 0",
    }
    return Tool(
        "recv",
        "Receive messages",
        "Returns new messages from the channels you are subscribed to, each once, oldest first; "
        "messages may be empty. more: call again, there are more. gaps: messages lost to "
        "retention. expired: subscriptions that ran out; subscribe again. notices: memories that "
        "were changed or deleted, warnings.",
        arguments(
            {
                "max_messages": whole(1, settings.recv_max_count),
                "wait_seconds": seconds,
                "max_kib": max_kib("size limit of the result, KiB; default fits your client"),
            }
        ),
        members(
            {
                "messages": LIST,
                "gaps": LIST,
                "expired": LIST,
                "notices": LIST,
                "dropped_notices": INTEGER,
                "more": BOOLEAN,
            },
        ),
        ADDS,
        ALWAYS_LOAD,
    )


def history() -> Tool:
    """By position."""
    return Tool(
        "history",
        "Read a channel's history",
        "Returns messages of any channel in order, also those that recv has returned. Default: the "
        "newest. more: go on in that direction with before or after.",
        arguments(
            {
                "channel": name(),
                "before": whole(1, description="only seq below this"),
                "after": whole(0, description="only seq above this, oldest first"),
                "limit": limit(),
                "max_kib": max_kib(),
            },
            "channel",
        ),
        members({"messages": LIST, "more": BOOLEAN}),
        READS,
    )


def search() -> Tool:
    """By what is in it."""
    return Tool(
        "search",
        "Search messages and memories",
        'Finds messages and current memories by words (all must match), "phrases", prefix*, -not; '
        "without query by the filters alone. Newest first; each with a snippet of the place.",
        arguments(
            {
                "query": text(),
                "channels": many(name()),
                "sender": name("display or agent name"),
                "since": text("RFC 3339"),
                "until": text("RFC 3339"),
                "thread": name("a conversation's first message_id"),
                "reply_to": name(),
                "kind": KIND,
                "order": {
                    "type": "string",
                    "enum": ["newest", "relevance"],
                },
                "limit": limit(),
                "cursor": text(),
                "max_kib": max_kib(),
            }
        ),
        members({"results": LIST, "next_cursor": text()}),
        READS,
    )


def read() -> Tool:
    """What was too long for the others."""
    return Tool(
        "read",
        "Read a whole message",
        "Returns one message by id (of a memory: its current revision). For content that was "
        "returned with content_truncated: go on at next_offset until there is none.",
        arguments(
            {
                "message_id": name("or a memory_id"),
                "offset": whole(0, description="characters of content to leave out"),
                "max_kib": max_kib(),
            },
            "message_id",
        ),
        members(
            texts("message_id", "content") | {"content_length": INTEGER, "next_offset": INTEGER},
        ),
        READS,
    )
