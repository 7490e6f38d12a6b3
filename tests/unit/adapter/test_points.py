"""What of the adapter's events and effects is which point."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentbus.adapter import points
from agentbus.adapter.core import AdapterCore
from agentbus.adapter.events import (
    DaemonClosed,
    DaemonData,
    Flushed,
    WriteDaemon,
    WriteStdout,
)
from agentbus.client.connection import Connection
from agentbus.gateway import replies
from agentbus.model.ids import AttachmentId, Epoch, SubscriptionId
from agentbus.runtime import faults
from agentbus.runtime.faults import Point
from agentbus.wire.rpc import AttachmentParams, DeliveredParams

DELIVER = replies.deliver_head(AttachmentId("1.1"), Epoch("1.1"), SubscriptionId(1), "general")
_, REPORT = Connection().request("delivered", DeliveredParams("1.1", "1.1", [(1, 1)]))
_, RENEWAL = Connection().request("renew", AttachmentParams("1.1"))


@pytest.mark.parametrize(
    ("event", "effect", "passed"),
    [
        (DaemonData(DELIVER), None, [Point.BUFFERED]),
        (DaemonData(b'{"id":1,"result":{}}\n'), None, []),
        (Flushed(1), WriteDaemon(REPORT), [Point.HANDED_OFF, "carried out", Point.REPORTED]),
        (DaemonClosed(), WriteDaemon(RENEWAL), ["carried out"]),
        (
            DaemonClosed(),
            WriteStdout(b'{"jsonrpc":"2.0","id":1,"result":{}}\n', 1),
            [Point.ANSWERING, "carried out"],
        ),
        (DaemonClosed(), WriteStdout(b'{"method":"notifications/message"}\n', 1), ["carried out"]),
    ],
)
def test_events_and_effects_are_points(
    monkeypatch: pytest.MonkeyPatch, event: Any, effect: Any, passed: list[Any]
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(faults, "requested", lambda _: seen.append)
    core = SimpleNamespace(handle=lambda event, now: [effect] if effect else [])
    watched = points.watched(cast("AdapterCore", core))
    for _ in watched.handle(event, cast("Any", None)):
        seen.append("carried out")  # noqa: PERF401 - between the points
    assert seen == passed
