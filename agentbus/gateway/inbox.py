"""How much waits for a session: counted by the writer, in one snapshot and without its own
messages; and the news that this has changed, not more often than anybody can use."""

from __future__ import annotations

from functools import partial
from typing import Final

from agentbus.config import KIB
from agentbus.gateway import accept, replies
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Call, live
from agentbus.gateway.events import StreamRead
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.reads import Reads
from agentbus.gateway.writer_link import WriterLink
from agentbus.mirror.read import sent_at
from agentbus.model.ids import AttachmentId, SessionId
from agentbus.model.session import SessionKey
from agentbus.wire.error_codes import from_failure
from agentbus.wire.links import (
    CountAsk,
    Counted,
    Outcome,
    Refused,
    SubscriptionInfo,
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

    def __init__(self, call: Call, session: SessionId, infos: list[SubscriptionInfo]) -> None:
        self.call = call
        self.session = session
        self.infos = sorted(infos, key=lambda info: info.channel)
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
    ) -> None:
        self._out = out
        self._alarms = alarms
        self._condition = condition
        self._writer = writer
        self._reads = reads
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
        asked = CountAsk(self._out.ref(), _whose(call, params))
        self._writer.inquire(asked, partial(self._counted, call))

    def _counted(self, call: Call, outcome: Outcome) -> None:
        if isinstance(outcome, Counted):
            self._look(_Counting(call, outcome.session, outcome.subscriptions))
        elif isinstance(outcome, Refused):
            self._out.refuse(call, from_failure(outcome.failure))

    # ---- ages

    def _look(self, counting: _Counting) -> None:
        """Has the oldest undelivered messages read, for their age."""
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


def _whose(call: Call, params: InboxParams) -> AttachmentId | SessionKey:
    """The session is its attachment's, or named. Raises StaleAttachment."""
    if params.attachment is not None:
        return live(call.connection, params.attachment).id
    assert params.application is not None  # `accept` has seen to it
    assert params.session is not None
    return SessionKey(params.application, params.session, params.child)
