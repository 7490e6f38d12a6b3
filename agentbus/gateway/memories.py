"""Changing memories, and telling those who hold or follow them.

Whoever has a revision in its window that was replaced is told so (`revise`, `revoke`) before the
change is answered: the writer announces it before its outcome, and what is sent here is written
first. Whoever follows the channel gets a notice, which may be missed.
"""

from __future__ import annotations

import msgspec

from agentbus.digest import digest
from agentbus.gateway import accept, replies
from agentbus.gateway.admission import Admission
from agentbus.gateway.channels import Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Call, Feed, live
from agentbus.gateway.inbox import Inbox
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.push import Pusher
from agentbus.gateway.reads import Reads
from agentbus.wire.links import MemoryChanged, MemoryDelete, MemoryEdit
from agentbus.wire.rpc import (
    MemoryDeleteParams,
    MemoryEditParams,
    NoticeNote,
    ReviseNote,
    RevokeNote,
)

_canonical = msgspec.json.Encoder(order="deterministic")


class Memories:
    """The methods `memory.edit` and `memory.delete`, and what follows from them."""

    def __init__(
        self,
        out: Outbox,
        condition: Condition,
        channels: Channels,
        reads: Reads,
        pusher: Pusher,
        inbox: Inbox,
        admission: Admission,
        max_message_kib: int,
    ) -> None:
        self._out = out
        self._condition = condition
        self._channels = channels
        self._reads = reads
        self._pusher = pusher
        self._inbox = inbox
        self._admission = admission
        self._max_message_kib = max_message_kib

    # ---- methods

    def edit(self, call: Call, params: MemoryEditParams) -> None:
        """Has the current revision replaced."""
        accept.memory_edit(params)
        self._condition.require_ready()
        attachment = live(call.connection, params.attachment)
        frame = MemoryEdit(
            self._out.ref(),
            attachment.id,
            params.memory_id,
            params.operation_id,
            _fingerprint(params),
            params.content,
            params.type,
            params.metadata,
            params.references,
        )
        too_large = None
        if call.size > accept.surely_fits(self._max_message_kib):
            too_large = accept.edit_size(params, attachment, self._max_message_kib)
        self._admission.admit(frame, attachment, call, too_large)

    def delete(self, call: Call, params: MemoryDeleteParams) -> None:
        """Has it deleted."""
        accept.memory_delete(params)
        self._condition.require_ready()
        attachment = live(call.connection, params.attachment)
        frame = MemoryDelete(
            self._out.ref(),
            attachment.id,
            params.memory_id,
            params.operation_id,
            _fingerprint(params),
        )
        self._admission.admit(frame, attachment, call)

    # ---- what follows

    def changed(self, change: MemoryChanged) -> None:
        """A memory is another one from now on, or none."""
        channel = self._channels.by_id(change.channel_id)
        self._reads.changed(change, self._condition.visible)
        feeds = list(channel.feeds.values())
        for feed in feeds:
            self._replace(feed, change)
        for feed in feeds:
            if feed.delivery.include_own or feed.delivery.session_id != change.session_id:
                self._out.line_if_read(feed.attachment.connection, _notice(feed, change))

    def _replace(self, feed: Feed, change: MemoryChanged) -> None:
        """Nothing obsolete stays in a window."""
        envelope = change.envelope
        size = None if envelope is None else len(envelope)
        if not feed.delivery.revised(change.seq, size):
            return
        connection = feed.attachment.connection
        self._out.line_first(connection, self._obsolete(feed, change))
        if envelope is None:
            self._inbox.stir(feed.attachment)
            self._pusher.refill(connection)

    def _obsolete(self, feed: Feed, change: MemoryChanged) -> bytes:
        attachment, epoch = feed.attachment.id, self._condition.epoch
        if change.envelope is None:
            gone = RevokeNote(
                attachment=attachment,
                epoch=epoch,
                subscription=feed.info.id,
                seq=change.seq,
                memory_id=change.memory_id,
            )
            return replies.notification(b"revoke", gone)
        revised = ReviseNote(
            attachment=attachment,
            epoch=epoch,
            subscription=feed.info.id,
            seq=change.seq,
            memory_id=change.memory_id,
            message=msgspec.Raw(change.envelope),
        )
        return replies.notification(b"revise", revised)


def _fingerprint(params: MemoryEditParams | MemoryDeleteParams) -> bytes:
    """16 bytes that two requests share when their authors chose the same for both."""
    kind = type(params).__name__
    chosen = msgspec.structs.replace(params, attachment="", operation_id="")
    return digest(_canonical.encode((kind, chosen)), 16)


def _notice(feed: Feed, change: MemoryChanged) -> bytes:
    deleted = NoticeNote(
        attachment=feed.attachment.id,
        kind="memory_deleted",
        channel=feed.info.channel,
        memory_id=change.memory_id,
        revision=change.revision,
    )
    if change.envelope is None:
        return replies.notification(b"notice", deleted)
    changed = msgspec.structs.replace(
        deleted, kind="memory_changed", message=msgspec.Raw(change.envelope)
    )
    return replies.notification(b"notice", changed)
