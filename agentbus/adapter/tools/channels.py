"""Channels and subscriptions."""

from __future__ import annotations

from agentbus.adapter.tools.schema import (
    BOOLEAN,
    INTEGER,
    KIND,
    LIST,
    READS,
    REMOVES,
    SETS,
    arguments,
    limit,
    members,
    name,
    text,
    texts,
)
from agentbus.wire.mcp import Tool


def list_channels() -> Tool:
    """All of them, by pages."""
    return Tool(
        "list_channels",
        "List channels",
        "Lists the channels by name: how many messages each holds, whether you are subscribed, how "
        "many wait for you there.",
        arguments({"limit": limit(), "cursor": text()}),
        members({"channels": LIST, "next_cursor": text()}),
        READS,
    )


def create_channel() -> Tool:
    """Fixes its kind."""
    return Tool(
        "create_channel",
        "Create a channel",
        "Creates a channel; one that exists with the same kind is fine. Does not subscribe you. "
        "A memory channel keeps what is sent until it is deleted.",
        arguments({"name": name("may have /, as in general/parser"), "kind": KIND}, "name"),
        members({"channel": text(), "kind": text(), "created": BOOLEAN}),
        SETS,
    )


def subscribe() -> Tool:
    """Also renews."""
    return Tool(
        "subscribe",
        "Subscribe to a channel",
        "recv will return what is sent to the channel from now on (history has the rest). "
        "Subscribing again keeps your place and renews the subscription.",
        arguments(
            {
                "channel": name(),
                "include_own": BOOLEAN | {"description": "also your own messages"},
            },
            "channel",
        ),
        members(
            texts("channel", "expires_at")
            | {
                "position": INTEGER,
                "created": BOOLEAN,
                "include_own": BOOLEAN,
                "expired_from": INTEGER,
            }
        ),
        SETS,
    )


def unsubscribe() -> Tool:
    """Forgets the place."""
    return Tool(
        "unsubscribe",
        "Leave a channel",
        "Ends your subscription; what you have not received there is not kept for you.",
        arguments({"channel": name()}, "channel"),
        members({"channel": text(), "removed": BOOLEAN}),
        REMOVES,
    )
