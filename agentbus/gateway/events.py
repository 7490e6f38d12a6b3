"""What the gateway's shell tells its core beside link events, and what the core asks of it.

Connections are numbers that the shell counts up; `ref`s are numbers that the core counts up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, Seq
from agentbus.model.stream import Entry
from agentbus.wire.error_codes import Failure
from agentbus.wire.events import Closed, Exit, Opened, Received, Send, TurnEnded, WakeAt, Woke
from agentbus.wire.lines import Overlong
from agentbus.wire.links import SearchAsk, SearchFound, SearchRefused


class Connected(msgspec.Struct, frozen=True):
    """Somebody has connected; `trusted` tells that it is a process of the daemon's user."""

    connection: int
    trusted: bool


class Lines(msgspec.Struct, frozen=True):
    """What was read of a connection at once, without line ends."""

    connection: int
    contents: Sequence[bytes | Overlong]


class Disconnected(msgspec.Struct, frozen=True):
    """A connection is over, after the last line it held."""

    connection: int


class StreamRead(msgspec.Struct, frozen=True):
    """Answers `ReadStream`, in stream order; `more` tells that the bounds ended the read."""

    ref: int
    entries: Sequence[Entry]
    more: bool
    failure: Failure | None = None


class Usage(msgspec.Struct, frozen=True):
    """What a process takes: percent of one core lately, and resident bytes."""

    cpu_percent: float
    rss_bytes: int


class Measured(msgspec.Struct, frozen=True):
    """Answers `Measure`; processes that are gone are left out."""

    ref: int
    usages: dict[int, Usage]


class Found(msgspec.Struct, frozen=True):
    """Answers `Find`; without envelope there is no such message, or a failure."""

    ref: int
    envelope: bytes | None
    failure: Failure | None = None


class Inspected(msgspec.Struct, frozen=True):
    """Answers `Inspect`: what the command wrote to stdout, or (`failure`) why that cannot count."""

    ref: int
    output: bytes
    failure: str = ""


class Searched(msgspec.Struct, frozen=True):
    """Answers `SearchEngine`."""

    answer: SearchFound | SearchRefused


Event = (
    Opened
    | Closed
    | Received
    | TurnEnded
    | Woke
    | Connected
    | Lines
    | Disconnected
    | StreamRead
    | Measured
    | Found
    | Inspected
    | Searched
)


class SendLines(msgspec.Struct, frozen=True):
    """Write lines, their line ends included; dropped where the connection is over. A line may be in
    pieces, so that what many have in common is not copied into each."""

    connection: int
    lines: list[bytes]


class SendFirst(msgspec.Struct, frozen=True, gc=False):
    """The same for one line, written to the socket before any line that is sent after it."""

    connection: int
    line: bytes


class SendIfRead(msgspec.Struct, frozen=True, gc=False):
    """The same, unless the connection leaves much unread: then nothing is sent."""

    connection: int
    line: bytes


class CloseConnection(msgspec.Struct, frozen=True):
    """End a connection once what was sent has been written; `Disconnected` does not follow."""

    connection: int


class ReadStream(msgspec.Struct, frozen=True):
    """Read a stream from `edge`, exclusive: upwards if `forward`, else downwards (None: from the
    newest), at most `count` entries and `max_bytes` of envelopes, but at least one entry."""

    ref: int
    channel_id: ChannelId
    edge: Seq | None
    forward: bool
    count: int
    max_bytes: int


class UseRedis(msgspec.Struct, frozen=True):
    """Where `ReadStream` reads from now on; None: nowhere."""

    socket_path: str | None


class Measure(msgspec.Struct, frozen=True):
    """Measure these processes (pids)."""

    ref: int
    pids: Sequence[int]


class Find(msgspec.Struct, frozen=True):
    """Look a message up in the database by the id of a memory, or (`message`) also by a message's
    own id: that of a memory's revision finds what the memory is now."""

    ref: int
    identity: str
    message: bool


class Inspect(msgspec.Struct, frozen=True):
    """Run the inspection command with this on its stdin, for at most so long."""

    ref: int
    document: bytes
    seconds: float


class StopInspection(msgspec.Struct, frozen=True):
    """Nobody waits for that inspection any more; `Inspected` does not follow."""

    ref: int


class SearchEngine(msgspec.Struct, frozen=True):
    """Search with the query engine of the server that `UseRedis` named."""

    ask: SearchAsk
    channels: Mapping[str, ChannelInfo]
    instance: str


class Note(msgspec.Struct, frozen=True):
    """A line for the log; never with anything of a payload."""

    action: str
    fields: dict[str, Any]


class Broke(msgspec.Struct, frozen=True):
    """A method failed in a way nobody had foreseen; for the log."""

    method: str
    error: Exception


class Serving(msgspec.Struct, frozen=True):
    """The bus serves, or recovers and answers so: time to say `Ready`."""


Effect = (
    Send
    | WakeAt
    | Exit
    | SendLines
    | SendFirst
    | SendIfRead
    | CloseConnection
    | ReadStream
    | Find
    | Inspect
    | StopInspection
    | SearchEngine
    | UseRedis
    | Measure
    | Note
    | Broke
    | Serving
)
