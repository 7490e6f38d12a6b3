"""What asks the daemon once: a request made of arguments, a tool's result made of the answer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agentbus.adapter import excerpts, requests, results
from agentbus.adapter.requests import Arguments
from agentbus.adapter.session import Session
from agentbus.wire.rpc import (
    ChannelListResult,
    DiscoverResult,
    HistoryResult,
    InboxResult,
    MemoryListResult,
    MemoryResult,
    Params,
    ReadResult,
    SearchResult,
    SubscribeResult,
    UnsubscribeResult,
)


class Operation(msgspec.Struct, frozen=True):
    """What one call asks for; the same for all its tries.

    `ceiling` is the result's, in bytes; `id` is there on those that change messages alone.
    """

    tool: str
    arguments: Arguments
    ceiling: int
    id: str | None = None

    @property
    def method(self) -> str:
        """The daemon's name for it."""
        return requests.METHODS[self.tool]

    def params(self, attachment: str) -> Params:
        """The request, made by this claim on the session."""
        given = requests.Wanted(self.arguments, self.ceiling - results.FRAME, self.id)
        return requests.PARAMS[self.tool](given, attachment)

    def result(self, session: Session, answer: Params) -> bytes | Operation:
        """The tool's result; the session learns what it says about it.

        Or what to ask instead: a page of fewer entries, where this one has no room for all.
        """
        match answer:
            case SubscribeResult():
                session.subscribed(answer)
                return results.plain(answer, "subscription")
            case UnsubscribeResult():
                session.unsubscribed(answer)
                return results.plain(answer)
            case HistoryResult():
                oldest = "after" in self.arguments and "before" not in self.arguments
                return results.told(answer, self.ceiling, newest=not oldest)
            case MemoryResult():
                return excerpts.fit(bytes(answer.message), self.ceiling)
            case ReadResult():
                offset = int(self.arguments.get("offset", 0))
                return excerpts.piece(bytes(answer.message), offset, self.ceiling)
            case DiscoverResult():
                return results.discovered(answer, self.ceiling)
            case InboxResult():
                return _counts(answer)
            case ChannelListResult() | MemoryListResult() | SearchResult():
                return self._page(answer)
            case _:
                return results.plain(answer)

    def _page(
        self, answer: ChannelListResult | MemoryListResult | SearchResult
    ) -> bytes | Operation:
        name, items = _items(answer)
        room = self.ceiling - results.FRAME - len(answer.next_cursor or "")
        kept = results.fitting(items, room)
        if kept < len(items) > 1:
            fewer = self.arguments | {"limit": max(1, kept)}
            return msgspec.structs.replace(self, arguments=fewer)
        if kept < len(items):
            items = [_cut(answer, room)]
        return results.page(name, items, answer.next_cursor)


def _items(
    answer: ChannelListResult | MemoryListResult | SearchResult,
) -> tuple[str, Sequence[bytes]]:
    match answer:
        case ChannelListResult():
            return "channels", [msgspec.json.encode(each) for each in answer.channels]
        case MemoryListResult():
            return "memories", [bytes(each) for each in answer.memories]
        case SearchResult():
            return "results", [results.found(each) for each in answer.results]


def _cut(answer: ChannelListResult | MemoryListResult | SearchResult, room: int) -> bytes:
    """The only item of a page, which is too large for it."""
    match answer:
        case ChannelListResult():
            return msgspec.json.encode(answer.channels[0])
        case MemoryListResult():
            return excerpts.fit(bytes(answer.memories[0]), room)
        case SearchResult():
            return results.found(answer.results[0], room)


def _counts(answer: InboxResult) -> bytes:
    channels = [
        {"channel": each.channel, "undelivered": each.undelivered}
        | ({} if each.oldest_at is None else {"oldest_at": each.oldest_at})
        for each in answer.channels
    ]
    total = sum(each.undelivered for each in answer.channels)
    return msgspec.json.encode({"undelivered": total, "channels": channels})


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
