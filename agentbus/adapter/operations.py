"""Tools that ask the daemon once: arguments to params, its results to results of tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentbus.adapter import results
from agentbus.adapter.session import Session
from agentbus.model.message import WIDEST_SEQ, Reference
from agentbus.wire.rpc import (
    ChannelCreateParams,
    ChannelListParams,
    HistoryParams,
    HistoryResult,
    Params,
    SendParams,
    SubscribeParams,
    SubscribeResult,
    UnsubscribeParams,
    UnsubscribeResult,
)

Arguments = dict[str, Any]


class Operation(msgspec.Struct, frozen=True):
    """What one call asks for; the same for all its tries.

    `ceiling` is the result's, in bytes; `message_id` is there on sends alone.
    """

    tool: str
    arguments: Arguments
    ceiling: int
    message_id: str | None = None

    @property
    def method(self) -> str:
        """The daemon's name for it."""
        return _METHODS[self.tool]

    def params(self, attachment: str) -> Params:
        """The request, made by this claim on the session."""
        return _PARAMS[self.tool](self, attachment)

    def result(self, session: Session, answer: Params) -> bytes:
        """The tool's result; the session learns what it says about it."""
        if isinstance(answer, SubscribeResult):
            session.subscribed(answer)
            return results.plain(answer, "subscription")
        if isinstance(answer, UnsubscribeResult):
            session.unsubscribed(answer)
        if isinstance(answer, HistoryResult):
            oldest = "after" in self.arguments and "before" not in self.arguments
            return results.told(answer, self.ceiling, newest=not oldest)
        return results.plain(answer)


def _send(operation: Operation, attachment: str) -> SendParams:
    assert operation.message_id is not None
    arguments = operation.arguments | {"message_id": operation.message_id}
    references = arguments.pop("references", None)
    if references is not None:
        references = [Reference(**each) for each in references]
    return SendParams(attachment=attachment, references=references, **arguments)


def _history(operation: Operation, attachment: str) -> HistoryParams:
    given = operation.arguments
    before, after = given.get("before"), given.get("after")
    return HistoryParams(
        attachment=attachment,
        channel=given["channel"],
        before=None if before is None else min(int(before), WIDEST_SEQ),
        after=None if after is None else min(int(after), WIDEST_SEQ),
        limit=int(given.get("limit", 100)),
        max_bytes=operation.ceiling,
    )


def _channel_list(operation: Operation, attachment: str) -> ChannelListParams:
    given = operation.arguments
    return ChannelListParams(
        attachment=attachment, limit=int(given.get("limit", 100)), cursor=given.get("cursor")
    )


def _as_given(kind: type[Params]) -> Callable[[Operation, str], Params]:
    return lambda operation, attachment: kind(attachment=attachment, **operation.arguments)


_METHODS: Final = {
    "send": "send",
    "history": "history",
    "list_channels": "channel.list",
    "create_channel": "channel.create",
    "subscribe": "subscribe",
    "unsubscribe": "unsubscribe",
}

_PARAMS: Final[dict[str, Callable[[Operation, str], Params]]] = {
    "send": _send,
    "history": _history,
    "list_channels": _channel_list,
    "create_channel": _as_given(ChannelCreateParams),
    "subscribe": _as_given(SubscribeParams),
    "unsubscribe": _as_given(UnsubscribeParams),
}


def whoami(session: Session) -> bytes:
    """The result of `whoami`, which needs no more than the claim."""
    facts, key = session.facts, session.key
    assert facts is not None
    shown: Arguments = {
        "display_name": facts.display_name,
        "agent": facts.agent,
        "application": key.application,
        "session": key.native,
    }
    if key.child is not None:
        shown["child"] = key.child
    if session.repository is not None:
        shown["repository"] = session.repository
    shown["subscriptions"] = [
        {
            "channel": each.channel,
            "position": each.position,
            "expires_at": each.expires_at,
            "include_own": each.include_own,
        }
        for each in session.current_subscriptions()
    ]
    return msgspec.json.encode(shown)
