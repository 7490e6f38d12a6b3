"""What of the gateway's events and effects is which point."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentbus.client.connection import Connection
from agentbus.gateway import points, replies
from agentbus.gateway.core import Core
from agentbus.gateway.events import Lines, SendLines
from agentbus.model.ids import (
    AttachmentId,
    ChannelId,
    CommitId,
    Epoch,
    Seq,
    SessionId,
    SubscriptionId,
)
from agentbus.runtime.child import Child
from agentbus.runtime.faults import Point
from agentbus.wire.events import Received
from agentbus.wire.lines import Overlong
from agentbus.wire.links import PROJECTOR_GATEWAY, Visible, VisibleMessage
from agentbus.wire.rpc import AttachmentParams, DeliveredParams

_, REPORT = Connection().request("delivered", DeliveredParams("1.1", "1.1", [(1, 1)]))
_, RENEWAL = Connection().request("renew", AttachmentParams("1.1"))
EPOCH = Epoch("1.1")
DELIVER = replies.deliver_head(AttachmentId("1.1"), EPOCH, SubscriptionId(1), "general")
MESSAGE = VisibleMessage(ChannelId(1), Seq(1), SessionId(1), b"{}")


@pytest.mark.parametrize(
    ("event", "point"),
    [
        (Received(PROJECTOR_GATEWAY, Visible(CommitId(1), [MESSAGE])), Point.VISIBLE),
        (Received(PROJECTOR_GATEWAY, Visible(CommitId(1), [])), None),
        (Lines(1, [RENEWAL, REPORT]), Point.REPORT_HEARD),
        (Lines(1, [RENEWAL]), None),
        (Lines(1, [Overlong(1, b"")]), None),
    ],
)
def test_events_are_points(event: Any, point: Point | None) -> None:
    passed: list[Point] = []
    child = cast("Child", SimpleNamespace(fault=passed.append))
    core = cast("Core", SimpleNamespace(handle=lambda event, now: []))
    assert list(points.watched(core, child).handle(event, cast("Any", None))) == []
    assert passed == ([point] if point else [])


def test_a_push_is_over_when_the_lines_are_written() -> None:
    done: list[Any] = []
    loop = SimpleNamespace(call_soon=lambda *call: done.append(call))
    fault = done.append
    child = cast("Child", SimpleNamespace(fault=fault, loop=loop))
    epoch = replies.epoch(EPOCH)
    lines = [SendLines(1, [epoch]), SendLines(1, [epoch, DELIVER])]
    core = cast("Core", SimpleNamespace(handle=lambda event, now: lines))
    for effect in points.watched(core, child).handle(Lines(1, [RENEWAL]), cast("Any", None)):
        done.append(effect)  # noqa: PERF402 - between the points
    assert done == [*lines, (fault, Point.PUSHED)]
