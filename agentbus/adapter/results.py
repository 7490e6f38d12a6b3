"""Structured results of tools, as the bytes of one JSON object; messages are spliced, not decoded.

A ceiling counts these bytes. A message that is larger alone is cut, and says so (`excerpts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from agentbus.adapter.excerpts import fit
from agentbus.adapter.inbox import Batch
from agentbus.adapter.notices import MESSAGE, Notice, Told
from agentbus.wire.rpc import DiscoveredAgent, DiscoverResult, HistoryResult, Params, SearchItem

_encode: Final = msgspec.json.encode

FRAME: Final = 128
"""Bytes of a result that are no messages: names of its members, brackets, `more`."""

SNIPPET: Final = b',"snippet":'

SHOWN_SESSIONS: Final = (100, 30, 10, 3, 1)
"""How many sessions an agent is shown with, the first of these with which all agents fit."""


def received(batch: Batch, told: Told, ceiling: int, *, more: bool) -> bytes:
    """The result of `recv`."""
    messages = [entry.message for entry in batch.entries if entry.message is not None]
    gaps = _encode([gap for entry in batch.entries for gap in entry.gaps])
    expired = _encode([each for entry in batch.entries for each in entry.expired])
    room = ceiling - FRAME - len(gaps) - len(expired)
    notices = _notices(told.notices, room - sum(len(message) + 1 for message in messages))
    if len(messages) == 1:
        messages = [fit(messages[0], room - len(notices))]
    parts = [b'{"messages":[', b",".join(messages), b'],"gaps":', gaps, b',"expired":', expired]
    parts += [b',"notices":[', notices, b'],"dropped_notices":', _encode(told.dropped)]
    parts += [b',"more":', _encode(more), b"}"]
    return b"".join(parts)


def _notices(notices: Sequence[Notice], room: int) -> bytes:
    shown: list[bytes] = []
    for notice in notices:
        if notice.message is None:
            shown.append(notice.shown)
        else:
            message = fit(notice.message, room - notice.size + len(notice.message))
            shown.append(b"".join((notice.shown[:-1], MESSAGE, message, b"}")))
        room -= len(shown[-1]) + 1
    return b",".join(shown)


def told(result: HistoryResult, ceiling: int, *, newest: bool) -> bytes:
    """The result of `history`; what does not fit is left out at the far end, and is `more`."""
    whole = [bytes(message) for message in result.messages]
    near = whole[::-1] if newest else whole
    kept = near[: fitting(near, ceiling - FRAME)] or [
        fit(message, ceiling - FRAME) for message in near[:1]
    ]
    messages = kept[::-1] if newest else kept
    more = result.more or len(kept) < len(whole)
    parts = [b'{"messages":[', b",".join(messages), b'],"more":', _encode(more), b"}"]
    return b"".join(parts)


def fitting(items: Sequence[bytes], room: int) -> int:
    """How many of them, from the first on, there is room for."""
    for number, item in enumerate(items):
        room -= len(item) + 1
        if room < 0:
            return number
    return len(items)


def page(name: str, items: Sequence[bytes], next_cursor: str | None) -> bytes:
    """A result of one list, and where it goes on."""
    cursor = b"" if next_cursor is None else b',"next_cursor":' + _encode(next_cursor)
    return b"".join((b'{"', name.encode(), b'":[', b",".join(items), b"]", cursor, b"}"))


def found(item: SearchItem, room: int | None = None) -> bytes:
    """A result of `search`: the message with its snippet, cut where it has more than `room`."""
    snippet = SNIPPET + _encode(item.snippet) + b"}"
    message = bytes(item.message)
    if room is not None:
        message = fit(message, room - len(snippet))
    return message[:-1] + snippet


def discovered(result: DiscoverResult, ceiling: int) -> bytes:
    """The result of `discover`: the latest sessions of as many agents as there is room for."""
    agents = result.agents
    for most in SHOWN_SESSIONS:
        shown = [_encode(_latest(agent, most)) for agent in agents]
        if fitting(shown, ceiling - FRAME) == len(shown):
            break
    else:
        shown = shown[: fitting(shown, ceiling - FRAME)]
    whole = len(shown) == len(agents) and all(len(each.sessions) <= most for each in agents)
    return b"".join((b'{"agents":[', b",".join(shown), b'],"more":', _encode(not whole), b"}"))


def _latest(agent: DiscoveredAgent, most: int) -> DiscoveredAgent:
    return msgspec.structs.replace(agent, sessions=agent.sessions[:most])


def plain(result: Params, *leave_out: str) -> bytes:
    """A result of the daemon as it is, but for some members."""
    members: dict[str, Any] = {
        name: value
        for name in result.__struct_fields__
        if (value := getattr(result, name)) is not None and name not in leave_out
    }
    return _encode(members)
