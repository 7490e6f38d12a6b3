"""What the indexer's core is told and what it asks for, beside what all cores share."""

from __future__ import annotations

import msgspec

from agentbus.wire.events import Closed, Exit, Note, Opened, Received, Send, TurnEnded, WakeAt, Woke
from agentbus.wire.links import SearchAsk, SearchFound, SearchRefused


class Searched(msgspec.Struct, frozen=True):
    """The search of this number has ended; `damaged` says what is wrong with the index where
    something is, `fault` names the error where it was one of ours."""

    number: int
    answer: SearchFound | SearchRefused
    damaged: str | None = None
    fault: str | None = None


class Search(msgspec.Struct, frozen=True):
    """Carry out a search, beside everything else; `Searched` follows. Numbers are never used again,
    while the `ref`s of one gateway are those of the next."""

    number: int
    ask: SearchAsk


class Cancel(msgspec.Struct, frozen=True):
    """Nobody waits for this search; it may end early."""

    number: int


class Renew(msgspec.Struct, frozen=True):
    """The index is another file now: searches that begin later must open it."""


Event = Opened | Closed | Received | TurnEnded | Woke | Searched
Effect = Send | WakeAt | Exit | Search | Cancel | Renew | Note
