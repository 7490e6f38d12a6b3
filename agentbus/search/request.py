"""A search as both indexes are asked it, and how one is continued.

A page ends at a message; the next one begins after it, whatever has come or gone since. The cursor
names that message, the newest one there was when the first page was read (those that came later
are not mixed in), and the search it belongs to.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from agentbus.digest import digest
from agentbus.errors import InvalidArgument, NotFound
from agentbus.model.channel import ChannelInfo, Kind
from agentbus.model.ids import ChannelId
from agentbus.search import document
from agentbus.search.query import Query, parse
from agentbus.wire.links import SearchFilter

Order = Literal["newest", "relevance"]

MAX_LIMIT: Final = 1000
MAX_RANKED: Final = 10_000
"""Results that an order by relevance goes to."""

REMEMBERED: Final = 4
"""Messages that a cursor names, should the last of them go."""

_DIGEST_BYTES: Final = 8


class Anchor(msgspec.Struct, frozen=True, array_like=True):
    """Where a page ended: after the first of the messages `last`, which others precede, of this
    `score`, among those up to `newest`; `rank` results had been shown."""

    search: bytes
    newest: int
    last: tuple[int, ...]
    score: float
    rank: int


class Request(msgspec.Struct, frozen=True):
    """A search whose every part is known to be sound. Times are milliseconds since 1970.

    `marks` is one list for each filter: a document has one mark of each list. `search` names all
    but the page.
    """

    query: Query
    marks: tuple[tuple[str, ...], ...]
    kind: Kind | None
    since: int | None
    until: int | None
    order: Order
    limit: int
    max_bytes: int
    search: bytes
    anchor: Anchor | None

    @property
    def is_ranked(self) -> bool:
        """Whether there is a text to order by."""
        return self.order == "relevance" and bool(self.query.wanted)

    def cursor(self, newest: int, shown: Sequence[int], score: float) -> str:
        """What continues after a page of these messages, whose last one has this score."""
        rank = len(shown) + (0 if self.anchor is None else self.anchor.rank)
        last = tuple(shown[: -REMEMBERED - 1 : -1])
        anchor = Anchor(self.search, newest, last, score, rank)
        return base64.urlsafe_b64encode(msgspec.msgpack.encode(anchor)).decode().rstrip("=")


def build(
    query: str,
    filters: SearchFilter,
    order: str,
    limit: int,
    cursor: str | None,
    max_bytes: int,
    channels: Mapping[str, ChannelInfo],
    instance: str,
) -> Request:
    """Raises InvalidArgument, or NotFound for a channel; the message says which argument it is."""
    if order not in ("newest", "relevance"):
        raise InvalidArgument(f"order is {order!r}; it is `newest` or `relevance`")
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidArgument(f"limit is {limit}; it goes from 1 to {MAX_LIMIT}")
    search = digest(repr((instance, query, filters, order)).encode(), _DIGEST_BYTES)
    return Request(
        parse(query),
        tuple(_marks(filters, channels)),
        filters.kind,
        _milliseconds("since", filters.since),
        _milliseconds("until", filters.until),
        "relevance" if order == "relevance" else "newest",
        limit,
        max_bytes,
        search,
        None if cursor is None else _anchor(cursor, search),
    )


def _marks(filters: SearchFilter, channels: Mapping[str, ChannelInfo]) -> list[tuple[str, ...]]:
    marks: list[tuple[str, ...]] = []
    if filters.channels:
        known = [_channel(name, channels) for name in dict.fromkeys(filters.channels)]
        marks.append(tuple(document.channel_mark(channel) for channel in known))
    if filters.kind is not None:
        marks.append((document.kind_mark(filters.kind),))
    if filters.sender is not None:
        marks.append((document.sender_mark(filters.sender),))
    if filters.thread is not None:
        marks.append((document.thread_mark(filters.thread),))
    if filters.reply_to is not None:
        marks.append((document.reply_mark(filters.reply_to),))
    return marks


def _channel(name: str, channels: Mapping[str, ChannelInfo]) -> ChannelId:
    channel = channels.get(name)
    if channel is None:
        raise NotFound(f"there is no channel {name!r}; list_channels shows those there are")
    return channel.id


def milliseconds(time: str) -> int:
    """Since 1970, of RFC 3339 or a shorter form of ISO 8601; UTC where it names no zone.

    Raises ValueError or OverflowError.
    """
    moment = datetime.fromisoformat(time.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _milliseconds(argument: str, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        return milliseconds(value)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"{argument} is {value[:64]!r}, which is no time; write it like 2026-11-30T16:40:00Z"
        ) from None


def _anchor(cursor: str, search: bytes) -> Anchor:
    padded = cursor + "=" * (-len(cursor) % 4)
    try:
        raw = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
        anchor = msgspec.msgpack.decode(raw, type=Anchor)
    except (ValueError, msgspec.DecodeError):
        raise InvalidArgument(
            "cursor is none that a search has given; leave it out to begin with the first page"
        ) from None
    if anchor.search != search or not anchor.last:
        raise InvalidArgument(
            "cursor belongs to another search: continue with the arguments of the first page, or "
            "leave it out"
        )
    return anchor


def following(ranked: list[tuple[int, float]], anchor: Anchor | None) -> list[tuple[int, float]]:
    """What comes after the anchor in an order by relevance, given from its beginning.

    Scores move as messages come and go, so the message itself is looked for, or where it has gone
    the one before it; where all of those are gone, the score tells the place.
    """
    if anchor is None:
        return ranked
    places = {found: place for place, (found, _) in enumerate(ranked)}
    for last in anchor.last:
        if last in places:
            return ranked[places[last] + 1 :]
    at = (-anchor.score, -anchor.last[0])
    return [(found, score) for found, score in ranked if (-score, -found) > at]
