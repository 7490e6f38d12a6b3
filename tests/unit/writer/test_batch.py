"""Cutting the queue."""

from __future__ import annotations

from agentbus.model.ids import AttachmentId
from agentbus.wire.links import GatewayHello, Release
from agentbus.writer.batch import MAX_OPERATIONS, Queue

RELEASES = [Release(ref, AttachmentId("1.1")) for ref in range(600)]


def filled(*operations: Release | GatewayHello) -> Queue:
    queue = Queue()
    for operation in operations:
        queue.put([operation])
    return queue


def test_a_batch_is_what_is_there_in_order_and_stays_until_it_is_done() -> None:
    queue = filled(*RELEASES[:3])
    assert queue.cut() == queue.cut() == RELEASES[:3]
    assert queue.drop(2)
    assert queue.cut() == RELEASES[2:3]
    assert len(queue) == 1


def test_a_batch_has_at_most_256_operations() -> None:
    queue = filled(*RELEASES)
    sizes = []
    while queue:
        sizes.append(len(queue.cut()))
        queue.drop(sizes[-1])
    assert MAX_OPERATIONS == 256
    assert sizes == [256, 256, 88]


def test_fewer_may_be_asked_for() -> None:
    assert filled(*RELEASES).cut(1) == RELEASES[:1]


def test_a_greeting_stands_alone() -> None:
    queue = filled(RELEASES[0], GatewayHello(0), RELEASES[1])
    batches = []
    while queue:
        batches.append(queue.cut())
        queue.drop(len(batches[-1]))
    assert batches == [[RELEASES[0]], [GatewayHello(0)], [RELEASES[1]]]


def test_nobody_waits_for_the_answers_of_a_gateway_that_is_gone() -> None:
    queue = filled(*RELEASES[:3])
    queue.orphan()
    queue.put([GatewayHello(0)])
    assert not queue.drop(2)
    assert not queue.drop(1)
    assert queue.drop(1)
