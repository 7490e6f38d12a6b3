"""How much waits for a session: counted by the writer, in one snapshot and without its own
messages; and the news that this has changed, not more often than anybody can use."""

from __future__ import annotations

from functools import partial
from typing import Final

from agentbus.config import KIB
from agentbus.errors import NotFound
from agentbus.gateway import accept, replies
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Call, Connection, attachments_of, live
from agentbus.gateway.events import StreamRead
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.reads import Reads
from agentbus.gateway.writer_link import WriterLink
from agentbus.mirror.read import sent_at
from agentbus.model.ids import SessionId
from agentbus.wire.error_codes import from_failure
from agentbus.wire.links import (
    CountAsk,
    Counted,
    Outcome,
    Refused,
    StatusAsk,
    SubscriptionInfo,
    WriterStatus,
)
from agentbus.wire.rpc import InboxEntry, InboxNote, InboxParams, InboxResult

NOTE_SECONDS: Final = 0.25
CHANGED: Final = "inbox"
"""Name of the alarm at which `tell` is due."""

LOOKED_AT: Final = 64
"""Channels of one answer whose oldest undelivered message is looked up."""

LOOK: Final = (32, 64 * KIB)
"""Count and bytes of messages read for that; own ones may come first."""


class _Counting:
    """An answer under way; `missing` are the look-ups that are not done."""

    def __init__(self, call: Call, session: SessionId | None) -> None:
        self.call = call
        self.session = session
        self.infos: list[SubscriptionInfo] = []
        self.oldest: dict[str, str] = {}
        self.missing = 0


class Inbox:
    """The method `inbox`, and the notification of that name."""

    def __init__(
        self,
        out: Outbox,
        alarms: Alarms,
        condition: Condition,
        writer: WriterLink,
        reads: Reads,
        connections: dict[int, Connection],
    ) -> None:
        self._out = out
        self._alarms = alarms
        self._condition = condition
        self._writer = writer
        self._reads = reads
        self._connections = connections
        self._stirred: list[Attachment] = []

    # ---- changes

    def stir(self, attachment: Attachment) -> None:
        """Its counts have changed."""
        if not attachment.counts_changed:
            attachment.counts_changed = True
            self._stirred.append(attachment)
            self._alarms.ensure(CHANGED, NOTE_SECONDS)

    def tell(self) -> None:
        """Tells all whose counts have changed."""
        stirred, self._stirred = self._stirred, []
        for attachment in stirred:
            attachment.counts_changed = False
            if attachment.connection.attachments.get(attachment.id) is attachment:
                note = replies.notification(b"inbox", InboxNote(attachment=attachment.id))
                self._out.line_if_read(attachment.connection, note)

    # ---- counts

    def inbox(self, call: Call, params: InboxParams) -> None:
        """Has them counted; nothing moves."""
        accept.inbox(params)
        self._condition.require_going_on()
        attachment = self._attached(call, params)
        if attachment is None:
            then = partial(self._listed, call, params)
            self._writer.inquire(StatusAsk(self._out.ref()), then)
        else:
            counting = _Counting(call, attachment.session_id)
            then = partial(self._counted, counting)
            self._writer.inquire(CountAsk(self._out.ref(), attachment.id), then)

    def _attached(self, call: Call, params: InboxParams) -> Attachment | None:
        """The attachment named, or the one of the session named, if it has any."""
        if params.attachment is not None:
            return live(call.connection, params.attachment)
        key = (params.application, params.session, params.child)
        for each in attachments_of(self._connections):
            names = each.names
            if each.session_id and (names.application, names.native, names.child) == key:
                return each
        return None

    def _counted(self, counting: _Counting, outcome: Outcome) -> None:
        if isinstance(outcome, Counted):
            self._look(counting, outcome.subscriptions)
        elif isinstance(outcome, Refused):
            self._out.refuse(counting.call, from_failure(outcome.failure))

    def _listed(self, call: Call, params: InboxParams, outcome: Outcome) -> None:
        """The session is not attached: the writer's list of all of them has it, or nobody has."""
        if isinstance(outcome, Refused):
            self._out.refuse(call, from_failure(outcome.failure))
            return
        assert isinstance(outcome, WriterStatus)
        key = (params.application, params.session, params.child)
        for row in outcome.sessions:
            if (row.application, row.native, row.child) == key:
                self._look(_Counting(call, None), row.subscriptions)
                return
        self._out.refuse(call, NotFound(f"no session {params.session!r} was ever connected"))

    # ---- ages

    def _look(self, counting: _Counting, infos: list[SubscriptionInfo]) -> None:
        """Has the oldest undelivered messages read, for their age."""
        counting.infos = sorted(infos, key=lambda info: info.channel)
        waiting = [info for info in counting.infos if info.undelivered][:LOOKED_AT]
        if self._condition.ready:
            counting.missing = len(waiting)
            for info in waiting:
                then = partial(self._looked, counting, info)
                self._reads.read(info.channel_id, info.position, LOOK, then)
        if not counting.missing:
            self._answer(counting)

    def _looked(self, counting: _Counting, info: SubscriptionInfo, reply: StreamRead) -> None:
        own = None if info.include_own else counting.session
        others = (entry for entry in reply.entries if entry.session_id != own)
        oldest = next(others, None)
        if oldest is not None:
            counting.oldest[info.channel] = sent_at(oldest.envelope)
        counting.missing -= 1
        if not counting.missing:
            self._answer(counting)

    def _answer(self, counting: _Counting) -> None:
        entries = [
            InboxEntry(
                channel=info.channel,
                undelivered=info.undelivered,
                oldest_at=counting.oldest.get(info.channel),
            )
            for info in counting.infos
        ]
        self._out.answer(counting.call, InboxResult(channels=entries))
