"""Sessions and cursors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentbus.model.ids import ChannelId, Seq, SessionId, SubscriptionId
from agentbus.model.message import Sender
from agentbus.model.session import (
    EXPIRY_MARKER_HOURS,
    HOUR_MS,
    Session,
    SessionKey,
    Subscription,
)


def cursor(position: int = 0, expires_at: int = 1000) -> Subscription:
    return Subscription(SubscriptionId(1), ChannelId(1), Seq(position), False, expires_at)


@given(start=st.integers(0, 50), reports=st.lists(st.integers(-5, 80)), top=st.integers(50, 60))
def test_a_cursor_goes_forward_and_never_past_the_top(
    start: int, reports: list[int], top: int
) -> None:
    subscription = cursor(start)
    for reported in reports:
        before = subscription.position
        moved = subscription.forward(Seq(reported), Seq(top))
        assert moved == (subscription.position != before)
        assert before <= subscription.position <= top
    assert subscription.position == max([start, *(r for r in reports if r <= top)])


def test_a_cursor_expires_at_its_time_and_its_marker_goes_720_hours_later() -> None:
    subscription = cursor(expires_at=1000)
    assert not subscription.is_expired(999)
    assert subscription.is_expired(1000)
    gone = 1000 + EXPIRY_MARKER_HOURS * HOUR_MS
    assert not subscription.is_forgotten(gone - 1)
    assert subscription.is_forgotten(gone)


def test_a_session_says_what_it_is_found_by_and_how_it_signs() -> None:
    session = Session(
        id=SessionId(1),
        agent_id=1,
        agent="Sam",
        application="codex",
        native="n1",
        child="c1",
        parent="n1",
        role="review",
        display_name="Sam-review",
        repository="tmi",
        attachment=None,
        attached_at=0,
        last_seen=0,
        created_at=0,
    )
    assert session.key == SessionKey("codex", "n1", "c1")
    assert session.sender == Sender("Sam-review", "Sam", "codex", "n1", "c1", "tmi")
