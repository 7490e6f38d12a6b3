"""The points of this process at which tests make it die; nothing of it is there in earnest."""

from __future__ import annotations

from typing import Any

from agentbus.adapter.core import AdapterCore
from agentbus.adapter.events import DaemonData, Flushed, WriteDaemon, WriteStdout
from agentbus.runtime import faults
from agentbus.runtime.faults import Point


def watched(core: AdapterCore) -> AdapterCore:
    """The core with its points."""
    fault = faults.requested("adapter")
    return faults.watched(core, fault, event=_happened, before=_before, after=_done)


def _happened(event: Any) -> Point | None:
    match event:
        case DaemonData(data=data) if b'"method":"deliver"' in data:
            return Point.BUFFERED
        case Flushed():
            return Point.HANDED_OFF
        case _:
            return None


def _before(effect: Any) -> Point | None:
    match effect:
        case WriteStdout(data=data) if b'"result"' in data:
            return Point.ANSWERING
        case _:
            return None


def _done(effect: Any) -> Point | None:
    match effect:
        case WriteDaemon(data=data) if b'"method":"delivered"' in data:
            return Point.REPORTED
        case _:
            return None
