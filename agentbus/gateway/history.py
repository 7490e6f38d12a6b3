"""Reading back, from the streams: a session sees at least what it has sent itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from agentbus.errors import InvalidArgument, Recovering
from agentbus.gateway import accept
from agentbus.gateway.channels import Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Call, live
from agentbus.gateway.events import StreamRead
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.pages import SLACK_BYTES, fitting
from agentbus.gateway.reads import Reads
from agentbus.gateway.visibility import Visibility
from agentbus.model.ids import ChannelId, Epoch, Seq
from agentbus.wire.rpc import (
    HistoryParams,
    HistoryResult,
    MemoryListParams,
    MemoryListResult,
    Params,
)


class Range(msgspec.Struct, frozen=True):
    """What to read: from `edge` on, upwards if `forward`, for a page of so many and so large."""

    channel_id: ChannelId
    edge: Seq | None
    forward: bool
    limit: int
    max_bytes: int


Result = Callable[[StreamRead], Params]


class History:
    """The methods `history` and `memory.list`."""

    def __init__(
        self,
        out: Outbox,
        condition: Condition,
        channels: Channels,
        reads: Reads,
        visibility: Visibility,
    ) -> None:
        self._out = out
        self._condition = condition
        self._channels = channels
        self._reads = reads
        self._visibility = visibility

    def history(self, call: Call, params: HistoryParams) -> None:
        """Has a stream read; the answer follows."""
        accept.name("channel", params.channel)
        accept.history(params)
        self._condition.require_ready()
        forward = _is_forward(params)
        edge = params.after if forward else params.before
        asked = Range(
            self._channels.named(params.channel).id,
            None if edge is None else Seq(edge),
            forward,
            params.limit,
            params.max_bytes,
        )
        self._begin(call, params.attachment, asked, partial(select, params))

    def memories(self, call: Call, params: MemoryListParams) -> None:
        """The same for a page of a memory channel."""
        edge = accept.memory_list(params)
        self._condition.require_ready()
        channel = self._channels.named(params.channel)
        if channel.kind != "memory":
            raise InvalidArgument(
                f"channel {params.channel!r} is {channel.kind}, only memory channels have "
                "memories; `history` reads messages"
            )
        asked = Range(channel.id, edge, True, params.limit, params.max_bytes)
        self._begin(call, params.attachment, asked, partial(list_page, params, edge))

    # ---- how

    def _begin(self, call: Call, attachment: str, asked: Range, result: Result) -> None:
        session = live(call.connection, attachment)
        call.connection.begin_read()
        self._visibility.when(session.last_commit, partial(self._read, call, asked, result))

    def _read(self, call: Call, asked: Range, result: Result, visible: bool) -> None:
        if not visible or not self._condition.ready:
            self._refuse(call)
            return
        self._reads.read(
            asked.channel_id,
            asked.edge,
            (asked.limit + 1, asked.max_bytes + SLACK_BYTES),
            partial(self._was_read, call, result, self._condition.epoch),
            forward=asked.forward,
        )

    def _was_read(self, call: Call, result: Result, epoch: Epoch, reply: StreamRead) -> None:
        if reply.failure is not None or not self._condition.ready or epoch != self._condition.epoch:
            self._refuse(call)
        else:
            call.connection.reads -= 1
            self._out.answer(call, result(reply))

    def _refuse(self, call: Call) -> None:
        call.connection.reads -= 1
        self._out.refuse(call, Recovering("the bus is recovering: the stream was not readable"))


def _is_forward(params: HistoryParams) -> bool:
    return params.before is None and params.after is not None


def select(params: HistoryParams, reply: StreamRead) -> HistoryResult:
    """What of the entries read belongs into the result: from the edge on, as long as it fits."""
    forward = _is_forward(params)
    floor = params.after or 0
    inside = [entry for entry in reply.entries if entry.seq > floor]
    chosen = fitting(inside if forward else inside[::-1], params.limit, params.max_bytes)
    more = len(chosen) < len(inside) or (reply.more and len(inside) == len(reply.entries))
    ordered = chosen if forward else chosen[::-1]
    return HistoryResult(messages=[msgspec.Raw(entry.envelope) for entry in ordered], more=more)


def list_page(params: MemoryListParams, edge: Seq, reply: StreamRead) -> MemoryListResult:
    """A page of memories; the cursor is the position of its last one."""
    chosen = fitting(reply.entries, params.limit, params.max_bytes)
    more = len(chosen) < len(reply.entries) or reply.more
    last = chosen[-1].seq if chosen else edge
    return MemoryListResult(
        memories=[msgspec.Raw(entry.envelope) for entry in chosen],
        next_cursor=str(last) if more else None,
    )
