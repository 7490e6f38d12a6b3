"""Reading back, from the stream."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from agentbus.config import MIB
from agentbus.errors import RateLimited, Recovering
from agentbus.gateway import accept
from agentbus.gateway.attachments import live
from agentbus.gateway.channels import Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Call
from agentbus.gateway.events import StreamRead
from agentbus.gateway.outbox import Outbox
from agentbus.model.delivery import Entry
from agentbus.model.ids import Epoch, Seq
from agentbus.wire.rpc import HistoryParams, HistoryResult

READS: Final = 4
"""Reads of one connection at a time."""

RETRY_MS: Final = 50

SLACK_BYTES: Final = MIB
"""Read beyond what is asked for, the largest envelope there is: so that what does not fit is seen,
and `more` is exact whatever the range."""


class History:
    """The method `history`."""

    def __init__(self, out: Outbox, condition: Condition, channels: Channels) -> None:
        self._out = out
        self._condition = condition
        self._channels = channels

    def history(self, call: Call, params: HistoryParams) -> None:
        """Has the stream read; the answer follows."""
        accept.name("channel", params.channel)
        accept.history(params)
        self._condition.require_ready()
        live(call.connection, params.attachment)
        channel = self._channels.named(params.channel)
        if call.connection.reads >= READS:
            raise RateLimited(
                f"{READS} reads of this connection are under way; wait for one",
                retry_after_ms=RETRY_MS,
            )
        call.connection.reads += 1
        edge = params.after if _is_forward(params) else params.before
        self._out.read(
            channel.id,
            None if edge is None else Seq(edge),
            (params.limit + 1, params.max_bytes + SLACK_BYTES),
            partial(self._was_read, call, params, self._condition.epoch),
            forward=_is_forward(params),
        )

    def _was_read(self, call: Call, params: HistoryParams, epoch: Epoch, reply: StreamRead) -> None:
        call.connection.reads -= 1
        if reply.failure is not None or not self._condition.ready or epoch != self._condition.epoch:
            self._out.refuse(call, Recovering("the bus is recovering: the stream was not readable"))
        else:
            self._out.answer(call, select(params, reply))


def _is_forward(params: HistoryParams) -> bool:
    return params.before is None and params.after is not None


def select(params: HistoryParams, reply: StreamRead) -> HistoryResult:
    """What of the entries read belongs into the result: from the edge on, as long as it fits."""
    forward = _is_forward(params)
    floor = params.after or 0
    inside = [entry for entry in reply.entries if entry.seq > floor]
    chosen = _fitting(params, inside if forward else inside[::-1])
    more = len(chosen) < len(inside) or (reply.more and len(inside) == len(reply.entries))
    ordered = chosen if forward else chosen[::-1]
    return HistoryResult(messages=[msgspec.Raw(entry.envelope) for entry in ordered], more=more)


def _fitting(params: HistoryParams, entries: list[Entry]) -> list[Entry]:
    chosen: list[Entry] = []
    room = params.max_bytes
    for entry in entries:
        room -= len(entry.envelope)
        if len(chosen) == params.limit or (chosen and room < 0):
            break
        chosen.append(entry)
    return chosen
