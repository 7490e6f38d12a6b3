"""The points of this process at which tests make it die; nothing of it is there in earnest."""

from __future__ import annotations

from typing import Any

from agentbus.gateway.core import Core
from agentbus.gateway.events import Line, SendLine
from agentbus.runtime import faults
from agentbus.runtime.child import Child
from agentbus.runtime.faults import Point
from agentbus.wire.events import Received
from agentbus.wire.links import Visible


def watched(core: Core, child: Child) -> Core:
    """The core with its points."""

    def pushed(effect: Any) -> None:
        """Lines are written by a call that was asked for with the first of them, before this."""
        if isinstance(effect, SendLine) and b'"method":"deliver"' in effect.line:
            child.loop.call_soon(child.fault, Point.PUSHED)

    return faults.watched(core, child.fault, event=_heard, after=pushed)


def _heard(event: Any) -> Point | None:
    match event:
        case Received(message=Visible(messages=messages)) if messages:
            return Point.VISIBLE
        case Line(content=bytes() as line) if b'"method":"delivered"' in line:
            return Point.REPORT_HEARD
        case _:
            return None
