"""Subscriptions: where each session stands in its channels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentbus.model.ids import ChannelId, Seq, SessionId, SubscriptionId
from agentbus.model.session import Subscription
from agentbus.sqlite import Connection
from agentbus.store.write.row_id import row_id

_SUBSCRIPTION: Final = """
    SELECT id, channel_id, position, include_own, expires_at FROM subscriptions
"""

SELECT_SUBSCRIPTIONS: Final = f"{_SUBSCRIPTION} WHERE session_id = ? ORDER BY id"
"""The cursors of a session, in the order in which it subscribed."""

INSERT_SUBSCRIPTION: Final = """
    INSERT INTO subscriptions (session_id, channel_id, position, include_own, expires_at)
    VALUES (?, ?, ?, ?, ?)
"""
"""A new cursor, under a number that no cursor ever had."""

UPDATE_SUBSCRIPTION: Final = """
    UPDATE subscriptions SET include_own = ?, expires_at = ? WHERE id = ?
"""
"""Subscribing again."""

RENEW_SUBSCRIPTIONS: Final = """
    UPDATE subscriptions SET expires_at = ? WHERE session_id = ? AND expires_at > ?
"""
"""A session is active: its cursors live on, save for those that have expired."""

ADVANCE_SUBSCRIPTION: Final = """
    UPDATE subscriptions SET position = ? WHERE id = ? AND position < ?
"""
"""Moves a cursor forward, never back."""

DELETE_SUBSCRIPTION: Final = "DELETE FROM subscriptions WHERE id = ?"
"""Discards a cursor."""

SELECT_FORGOTTEN: Final = "SELECT id FROM subscriptions WHERE expires_at <= ? LIMIT ?"
"""Cursors that expired before a time."""


class Cursors:
    """Durable positions."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute
        self._execute_many = connection.executemany

    def subscriptions(self, session: SessionId) -> list[Subscription]:
        """A session's cursors, in the order in which it subscribed."""
        found = self._execute(SELECT_SUBSCRIPTIONS, (session,))
        return [
            Subscription(id_, channel, position, bool(include_own), expires_at)
            for id_, channel, position, include_own, expires_at in found
        ]

    def create_subscription(
        self,
        session: SessionId,
        channel: ChannelId,
        position: Seq,
        *,
        include_own: bool,
        expires_at: int,
    ) -> Subscription:
        """A new cursor."""
        row = (session, channel, position, include_own, expires_at)
        number = SubscriptionId(row_id(self._execute(INSERT_SUBSCRIPTION, row)))
        return Subscription(number, channel, position, include_own, expires_at)

    def update_subscription(self, subscription: Subscription) -> None:
        """Stores its lifetime and `include_own`."""
        row = (subscription.include_own, subscription.expires_at, subscription.id)
        self._execute(UPDATE_SUBSCRIPTION, row)

    def renew_subscriptions(self, session: SessionId, expires_at: int, now: int) -> None:
        """All that have not expired live on."""
        self._execute(RENEW_SUBSCRIPTIONS, (expires_at, session, now))

    def delete_subscription(self, subscription: SubscriptionId) -> None:
        """Discards the cursor."""
        self._execute(DELETE_SUBSCRIPTION, (subscription,))

    def forget_expired(self, oldest: int, limit: int) -> list[SubscriptionId]:
        """Discards so many of the cursors that expired by then; which they were."""
        found = self._execute(SELECT_FORGOTTEN, (oldest, limit)).fetchall()
        self._execute_many(DELETE_SUBSCRIPTION, found)
        return [SubscriptionId(row[0]) for row in found]

    def advance_subscriptions(self, positions: Iterable[tuple[SubscriptionId, Seq]]) -> None:
        """Moves cursors forward."""
        self._execute_many(
            ADVANCE_SUBSCRIPTION, [(position, number, position) for number, position in positions]
        )
