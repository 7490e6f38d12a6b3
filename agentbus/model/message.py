"""The message envelope: what a sender submits, what the bus stores and everybody receives."""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from agentbus.digest import digest
from agentbus.model.ids import Seq

Scalar = str | int | float | bool | None

DEFAULT_TYPE: Final = "message"
"""`type` of a message whose sender named none."""

WIDEST_SEQ: Final = Seq(2**53 - 1)
"""Largest position that every JSON reader keeps exact; envelopes are measured with it."""

SENT_AT_WIDTH: Final = len("2026-11-30T16:40:27.123Z")


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pointer to something outside the bus, kept as given; never fetched or resolved."""

    kind: Literal["url", "unix_path", "windows_path"]
    value: str


class Payload(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the sender chooses. Everything else in an envelope is assigned by the bus."""

    content: str
    type: str = DEFAULT_TYPE
    reply_to: str | None = None
    metadata: dict[str, Scalar] | None = None
    references: list[Reference] | None = None


class Sender(msgspec.Struct, frozen=True):
    """Who sent it, bound by the bus: the names at the time of sending."""

    display_name: str
    agent: str
    application: str
    session: str
    child: str | None = None
    repository: str | None = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """The envelope. Encoded to JSON once, by the writer; these bytes are stored and served.

    `seq` is the position in the channel, `sent_at` RFC 3339 in UTC with milliseconds,
    `thread` the message id of the conversation's root (its own where it starts one).
    """

    message_id: str
    seq: int
    channel: str
    sender: str
    agent: str
    application: str
    session: str
    sent_at: str
    type: str
    content: str
    thread: str
    child: str | None = None
    repository: str | None = None
    reply_to: str | None = None
    metadata: dict[str, Scalar] | None = None
    references: list[Reference] | None = None
    memory_id: str | None = None
    revision: int | None = None


_canonical = msgspec.json.Encoder(order="deterministic")


def fingerprint(channel: str, payload: Payload) -> bytes:
    """16 bytes that two submissions share when the sender chose the same for both."""
    return digest(_canonical.encode((channel, payload)), 16)


_envelopes = msgspec.json.Encoder()


def encode_envelope(message: Message) -> bytes:
    """The bytes that are stored, mirrored and delivered."""
    return _envelopes.encode(message)


def envelope_size(envelope: bytes, seq: int) -> int:
    """What `max_message_kib` limits: the bytes it would have at the widest position.

    So the same message is never too large at one time and not at another.
    """
    return len(envelope) + _WIDEST_DIGITS - len(str(seq))


_WIDEST_DIGITS: Final = len(str(WIDEST_SEQ))
_SECONDS_WIDTH: Final = len("2026-11-30T16:40:27")


def rfc3339(milliseconds: int) -> str:
    """A time of the bus, milliseconds since 1970, as everybody is shown it (UTC)."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_whole(seconds)}.{rest:03d}Z"


@functools.lru_cache(maxsize=16)
def _whole(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:_SECONDS_WIDTH]
