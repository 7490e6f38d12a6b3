"""The points of this process at which tests make it die; nothing of it is there in earnest."""

from __future__ import annotations

from typing import Any

from agentbus.gateway.core import Core
from agentbus.gateway.events import Lines, SendLines
from agentbus.runtime import faults
from agentbus.runtime.child import Child
from agentbus.runtime.faults import Point
from agentbus.wire.events import Received
from agentbus.wire.lines import Overlong
from agentbus.wire.links import Visible


def watched(core: Core, child: Child) -> Core:
    """The core with its points."""

    def pushed(effect: Any) -> None:
        """Lines are written by a call that was asked for with the first of them, before this."""
        if isinstance(effect, SendLines) and any(map(_is_push, effect.lines)):
            child.loop.call_soon(child.fault, Point.PUSHED)

    return faults.watched(core, child.fault, event=_heard, after=pushed)


def _heard(event: Any) -> Point | None:
    match event:
        case Received(message=Visible(messages=messages)) if messages:
            return Point.VISIBLE
        case Lines(contents=lines) if any(map(_is_report, lines)):
            return Point.REPORT_HEARD
        case _:
            return None


def _is_report(line: bytes | Overlong) -> bool:
    return isinstance(line, bytes) and b'"method":"delivered"' in line


def _is_push(line: bytes) -> bool:
    return b'"method":"deliver"' in line
