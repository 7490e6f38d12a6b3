"""What was asked and not answered is asked again in the same order, for thirty seconds."""

from __future__ import annotations

from agentbus.gateway.pending import PATIENCE_SECONDS, Operation, Pending
from agentbus.model.ids import AttachmentId
from agentbus.wire.links import Release, Renew

A = AttachmentId("1.1")


def filled(*refs: int, up: bool = True) -> Pending:
    pending = Pending()
    if up:
        pending.opened()
        pending.welcomed()
    for ref in refs:
        pending.add(ref, Operation(Renew(ref, A)), 0.0)
    return pending


def test_an_operation_is_sent_at_once_where_there_is_a_writer() -> None:
    pending = Pending()
    assert not pending.add(1, Operation(Renew(1, A)), 0.0)
    assert pending.opened() == [Renew(1, A)]
    assert pending.add(2, Operation(Renew(2, A)), 0.0)


def test_a_new_writer_is_asked_what_was_not_answered_in_order() -> None:
    pending = filled(1, 2, 3)
    assert pending.answered(2) is not None
    pending.closed(5.0)
    pending.add(4, Operation(Renew(4, A)), 6.0)
    assert [frame.ref for frame in pending.opened()] == [1, 3, 4]


def test_answers_to_what_was_not_asked_are_nothing() -> None:
    pending = filled(1)
    assert pending.answered(7) is None
    assert pending.answered(1) is not None
    assert pending.answered(1) is None
    assert len(pending) == 0


def test_patience_ends_only_while_no_writer_serves() -> None:
    pending = filled(1)
    assert pending.due(PATIENCE_SECONDS) is None
    assert pending.expired(1000.0, PATIENCE_SECONDS) == []
    pending.closed(1000.0)
    assert pending.due(PATIENCE_SECONDS) == 1000.0 + PATIENCE_SECONDS
    assert pending.expired(1029.9, PATIENCE_SECONDS) == []
    pending.opened()
    assert [each.frame.ref for each in pending.expired(1030.0, PATIENCE_SECONDS)] == [1]
    assert pending.due(PATIENCE_SECONDS) is None


def test_a_writer_that_keeps_dying_does_not_prolong_the_wait() -> None:
    pending = filled(1)
    pending.closed(10.0)
    pending.opened()
    pending.closed(35.0)
    assert [each.frame.ref for each in pending.expired(40.0, PATIENCE_SECONDS)] == [1]


def test_what_has_to_be_done_is_asked_however_long_it_takes() -> None:
    pending = filled()
    pending.add(1, Operation(Release(1, A), lasting=True), 0.0)
    pending.closed(0.0)
    assert pending.due(PATIENCE_SECONDS) is None
    assert pending.expired(1e9, PATIENCE_SECONDS) == []
    assert pending.opened() == [Release(1, A)]
