"""A bus that fills up says so to whoever follows a channel."""

from __future__ import annotations

from agentbus.gateway.alerts import SHOWN_SECONDS
from agentbus.wire.events import Received
from agentbus.wire.links import GATEWAY_WRITER, CapacityWarning
from tests.support.gateway_rig import MEMORY, Rig, info

TEXT = "redis_budget_mib is full of memories; raise it in /etc/agentbus.json, or reset"


def warn(rig: Rig) -> None:
    rig.event(Received(GATEWAY_WRITER, CapacityWarning(TEXT)))


def test_every_attached_subscriber_is_told_once() -> None:
    rig = Rig()
    both, attachment = rig.member(1, info(1), info(2, MEMORY))
    one, _ = rig.member(2, info(3, MEMORY))
    nothing = rig.connect()
    rig.attach(nothing, 3)
    warn(rig)
    assert rig.notes(both, "notice") == [
        {"attachment": attachment, "kind": "capacity", "channel": "general", "text": TEXT}
    ]
    assert [note["channel"] for note in rig.notes(one, "notice")] == ["memory"]
    assert rig.notes(nothing, "notice") == []


def test_status_shows_it_for_a_while() -> None:
    rig = Rig()
    alerts = rig.core._parts.alerts
    assert alerts.shown() == []
    warn(rig)
    assert alerts.shown() == [TEXT]
    rig.sleep(SHOWN_SECONDS + 1)
    rig.show_nothing()
    assert alerts.shown() == []
