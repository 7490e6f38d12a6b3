"""Channels, and the durable cursors in them.

A cursor only moves forward, by what was handed to its session. Explicit activity renews it; one
that has expired stands still, as a marker, until its session takes note of it, subscribes anew, or
720 hours have passed.
"""

from __future__ import annotations

from agentbus.errors import ChannelKindConflict, NotFound
from agentbus.model.channel import Kind
from agentbus.model.ids import Seq, SessionId, SubscriptionId
from agentbus.model.names import check_new_name
from agentbus.model.session import Session, SessionKey, Subscription
from agentbus.store.write.counts import Standing
from agentbus.wire.links import (
    ChannelCreate,
    ChannelCreated,
    CountAsk,
    Counted,
    Done,
    ExpiredInfo,
    Renew,
    Renewed,
    Report,
    Subscribe,
    Subscribed,
    SubscriptionInfo,
    Unsubscribe,
    Unsubscribed,
)
from agentbus.writer.state import Attached, Channel, State
from agentbus.writer.work import Work

INFO_BYTES = 64
"""About what one subscription adds to an answer, beside its channel's name."""


def infos(work: Work, attached: Attached) -> list[SubscriptionInfo]:
    """A session's cursors, for an answer. Expired ones are not: nothing is to be fed from them."""
    return described(work, [attached])[0]


def info(work: Work, attached: Attached, cursor: Subscription) -> SubscriptionInfo:
    """One cursor, for an answer."""
    (undelivered,) = _undelivered(work, [(attached.session.id, cursor)])
    return _info(work, cursor, undelivered)


def described(work: Work, sessions: list[Attached]) -> list[list[SubscriptionInfo]]:
    """The cursors of several sessions, counted together."""
    owned = [
        (attached.session.id, cursor)
        for attached in sessions
        for cursor in attached.subscriptions.values()
        if not cursor.is_expired(work.patient_now)
    ]
    found: dict[SessionId, list[SubscriptionInfo]] = {}
    for (session, cursor), undelivered in zip(owned, _undelivered(work, owned), strict=True):
        found.setdefault(session, []).append(_info(work, cursor, undelivered))
    return [found.get(attached.session.id, []) for attached in sessions]


def _undelivered(work: Work, owned: list[tuple[SessionId, Subscription]]) -> list[int]:
    channels = work.state.channels_by_id
    asked = [
        Standing(
            cursor.channel_id, cursor.position, SessionId(0) if cursor.include_own else session
        )
        for session, cursor in owned
    ]
    behind = [it for it in asked if it.position < channels[it.channel_id].last_seq]
    if not behind:
        return [0] * len(asked)
    work.flush()
    counts = dict(zip(behind, work.store.counts.undelivered(behind), strict=True))
    return [counts.get(standing, 0) for standing in asked]


def _info(work: Work, cursor: Subscription, undelivered: int) -> SubscriptionInfo:
    channel = work.state.channels_by_id[cursor.channel_id]
    work.size += INFO_BYTES + len(channel.name)
    return SubscriptionInfo(
        cursor.id,
        channel.name,
        channel.id,
        cursor.position,
        cursor.expires_at / 1000,
        cursor.include_own,
        undelivered,
    )


def markers(work: Work, attached: Attached) -> list[ExpiredInfo]:
    """A session's cursors that ran out and that it has not taken note of; its gateway hears it."""
    cursors = [
        cursor for cursor in attached.subscriptions.values() if cursor.is_expired(work.patient_now)
    ]
    attached.told.update(cursor.id for cursor in cursors)
    return [expired_info(work.state, cursor) for cursor in cursors]


def expired_info(state: State, cursor: Subscription) -> ExpiredInfo:
    """A cursor that ran out, for the session's notice."""
    channel = state.channels_by_id[cursor.channel_id]
    return ExpiredInfo(cursor.id, channel.name, channel.id, cursor.position)


def begin(work: Work, session: SessionId, channels: list[str]) -> list[Subscription]:
    """A new session follows these channels from where they are; missing ones are made."""
    return [
        _subscribe(work, session, work.state.channels.get(name) or _create(work, name, "ordinary"))
        for name in channels
    ]


def resume(work: Work, session: SessionId, *, active: bool) -> list[Subscription]:
    """A known session has what it had; renewed, unless its adapter merely came back by itself."""
    work.flush_positions()
    cursors = work.store.cursors.subscriptions(session)
    gone = [each for each in cursors if work.forgets and each.is_forgotten(work.now)]
    for cursor in gone:
        work.store.cursors.delete_subscription(cursor.id)
    kept = [cursor for cursor in cursors if cursor not in gone]
    if active:
        _renew(work, session, kept)
    return kept


def create_channel(work: Work, operation: ChannelCreate) -> ChannelCreated:
    """Makes a channel, or finds it. Raises ChannelKindConflict, InvalidArgument."""
    work.state.holder(operation.attachment)
    channel = work.state.channels.get(operation.name)
    if channel is None:
        check_new_name(operation.name, "channel")
        channel = _create(work, operation.name, operation.kind)
        return ChannelCreated(operation.ref, channel.info, True)
    if channel.kind != operation.kind:
        raise ChannelKindConflict(
            f"channel {channel.name!r} exists as {channel.kind}, which never changes; use it so, "
            "or choose another name"
        )
    return ChannelCreated(operation.ref, channel.info, False)


def subscribe(work: Work, operation: Subscribe) -> Subscribed:
    """Follows a channel from where it is; followed already, renews. Raises NotFound."""
    attached = work.state.holder(operation.attachment)
    channel = work.state.channel(operation.channel)
    cursor = attached.subscription(channel.id)
    if cursor is not None and not cursor.is_expired(work.patient_now):
        if operation.include_own is not None:
            cursor.include_own = operation.include_own
        cursor.expires_at = _lifetime(work)
        work.store.cursors.update_subscription(cursor)
        return Subscribed(operation.ref, info(work, attached, cursor), False)
    expired_from = None
    if cursor is not None:
        expired_from = cursor.position
        _discard(work, attached, cursor)
    own = bool(operation.include_own)
    cursor = _subscribe(work, attached.session.id, channel, include_own=own)
    attached.subscriptions[cursor.id] = cursor
    return Subscribed(operation.ref, info(work, attached, cursor), True, expired_from)


def unsubscribe(work: Work, operation: Unsubscribe) -> Unsubscribed:
    """Discards the cursor, if there is one. Raises NotFound."""
    attached = work.state.holder(operation.attachment)
    channel = work.state.channel(operation.channel)
    cursor = attached.subscription(channel.id)
    if cursor is not None:
        _discard(work, attached, cursor)
    return Unsubscribed(operation.ref, channel.name, cursor.id if cursor else None)


def renew(work: Work, operation: Renew) -> Renewed:
    """The session is active."""
    attached = work.state.holder(operation.attachment)
    _renew(work, attached.session.id, list(attached.subscriptions.values()))
    return Renewed(operation.ref, infos(work, attached))


def count(work: Work, operation: CountAsk) -> Counted:
    """What each of a session's cursors has not been past, in one state of the database.

    Raises StaleAttachment, or NotFound where nobody ever had the key.
    """
    of = operation.of
    attached = _named(work, of) if isinstance(of, SessionKey) else work.state.holder(of)
    return Counted(operation.ref, attached.session.id, infos(work, attached))


def _named(work: Work, key: SessionKey) -> Attached:
    session = work.store.people.session(key)
    if session is None:
        raise NotFound(f"no session {key.native!r} was ever connected")
    held = session.attachment and work.state.attached.get(session.attachment)
    return held or stored(work, session)


def stored(work: Work, session: Session) -> Attached:
    """A session that nobody holds, with its cursors."""
    cursors = work.store.cursors.subscriptions(session.id)
    by_id = {cursor.id: cursor for cursor in cursors}
    return Attached(session, session.sender, by_id, resumed=True)


def report(work: Work, operation: Report) -> Done:
    """Messages up to these positions were handed to the session."""
    _move(work, work.state.holder(operation.attachment), operation.positions)
    return Done(operation.ref)


def _move(work: Work, attached: Attached, positions: list[tuple[SubscriptionId, Seq]]) -> None:
    for number, position in positions:
        cursor = attached.subscriptions.get(number)
        if cursor is None:
            continue
        if cursor.is_expired(work.patient_now):
            if position == cursor.position:
                _discard(work, attached, cursor)
        elif cursor.forward(position, work.state.channels_by_id[cursor.channel_id].last_seq):
            work.move(cursor)


def _create(work: Work, name: str, kind: Kind) -> Channel:
    channel = Channel(work.store.bus.create_channel(name, kind, work.now), name, kind, Seq(0))
    work.state.add_channel(channel)
    work.opened.append(channel)
    return channel


def _lifetime(work: Work) -> int:
    return work.now + work.terms.cursor_idle


def _subscribe(
    work: Work, session: SessionId, channel: Channel, *, include_own: bool = False
) -> Subscription:
    return work.store.cursors.create_subscription(
        session, channel.id, channel.last_seq, include_own=include_own, expires_at=_lifetime(work)
    )


def _renew(work: Work, session: SessionId, cursors: list[Subscription]) -> None:
    expires_at = _lifetime(work)
    work.store.cursors.renew_subscriptions(session, expires_at, work.patient_now)
    for cursor in cursors:
        if not cursor.is_expired(work.patient_now):
            cursor.expires_at = expires_at


def _discard(work: Work, attached: Attached, cursor: Subscription) -> None:
    work.store.cursors.delete_subscription(cursor.id)
    work.store.gaps.forget(cursor.id)
    del attached.subscriptions[cursor.id]
