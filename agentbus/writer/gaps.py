"""What a session missed because retention removed it before it was delivered."""

from __future__ import annotations

from agentbus.errors import NotFound
from agentbus.model.ids import Seq, SubscriptionId
from agentbus.model.session import Subscription
from agentbus.wire.links import GapAsk, GapTold
from agentbus.writer.work import Work


def tell(work: Work, operation: GapAsk) -> GapTold:
    """The gap after a position; to be called when everything of the batch is in the database.

    What was reported meanwhile is not lost, so positions up to the cursor's are not counted.
    Raises NotFound where the cursor is gone or has expired.
    """
    cursor = _held(work, operation.subscription)
    channel = work.state.channels_by_id[cursor.channel_id]
    after = operation.after
    if channel.kind == "memory":  # its holes are deleted memories
        return GapTold(operation.ref, cursor.id, after, Seq(after + 1), 0)
    following = work.store.gaps.next_live(channel.id, after)
    resumed_at = Seq(max(after, channel.last_seq) + 1) if following is None else following
    start = max(after, cursor.position)
    lost = max(0, resumed_at - 1 - start)
    if lost and not cursor.include_own:
        lost -= work.store.gaps.own(cursor.id, start, resumed_at)
    return GapTold(operation.ref, cursor.id, after, resumed_at, lost)


def _held(work: Work, number: SubscriptionId) -> Subscription:
    for attached in work.state.attached.values():
        cursor = attached.subscriptions.get(number)
        if cursor is not None and not cursor.is_expired(work.patient_now):
            return cursor
    raise NotFound("that subscription has ended or expired")
