"""The writer's part of `status`."""

from __future__ import annotations

from typing import Final

from agentbus.wire.links import SessionRow, StatusAsk, SubscriptionInfo, WriterStatus
from agentbus.writer.state import Attached
from agentbus.writer.subscriptions import described, stored
from agentbus.writer.work import Work

DETACHED: Final = 100
"""Sessions that nobody holds, the last seen first, beside all that are attached."""


def status(work: Work, operation: StatusAsk) -> WriterStatus:
    """Counts and sizes; to be called when everything of the batch is in the database."""
    store, meta = work.store, work.store.bus.meta()
    return WriterStatus(
        operation.ref,
        store.path,
        meta.logical_bytes,
        store.file_bytes(),
        store.wal_bytes(),
        meta.commit_id,
        store.synchronous,
        meta.messages,
        meta.memories,
        meta.tombstones,
        meta.receipts,
        meta.evicted,
        _sessions(work),
        work.room.projection,
    )


def _sessions(work: Work) -> list[SessionRow]:
    detached = [stored(work, session) for session in work.store.people.detached(DETACHED)]
    sessions = [*work.state.attached.values(), *detached]
    subscriptions = described(work, sessions)
    return [_row(work, held, infos) for held, infos in zip(sessions, subscriptions, strict=True)]


def _row(work: Work, held: Attached, subscriptions: list[SubscriptionInfo]) -> SessionRow:
    session = held.session
    work.size += 256
    return SessionRow(
        session.display_name,
        session.agent,
        session.application,
        session.native,
        session.child,
        session.repository,
        session.attachment,
        (session.attached_at if session.attachment else session.last_seen) / 1000,
        subscriptions,
    )
