"""The projector without its IO: events to the part that they concern.

endpoint   the way to the server, its identity and fitness
pipeline   recovery, and what is written when
writes     what is on its way to Redis
live       what the writer tells, as steps
trimming   evictions, and the measure
index      the search index within the server, where it has one
checks     the look at what nobody should have changed, and snapshots
standing   the state, and what writer and gateway are told
ending     the orderly stop
"""

from __future__ import annotations

from typing import Any, assert_never

from agentbus.errors import DatabaseDamaged, StorageFailed, VersionMismatch
from agentbus.model.ports import Instant
from agentbus.projector import endpoint, pipeline
from agentbus.projector.events import Connected, Disconnected, Effect, Event, Replied
from agentbus.projector.outbox import Outbox
from agentbus.projector.pipeline import Pipeline
from agentbus.projector.ports import Source
from agentbus.projector.standing import Standing
from agentbus.projector.states import State
from agentbus.wire.events import Closed, Opened, Received, TurnEnded, Woke
from agentbus.wire.links import (
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Committed,
    Evicted,
    RedisDown,
    RedisStatusAsk,
    RedisUp,
    Stop,
    WriterHello,
)


class Core:
    """See `states` for what it can be; `boot` names this process to the gateway."""

    def __init__(self, source: Source, boot: str) -> None:
        self._out = Outbox()
        self._standing = Standing(self._out, boot)
        self._pipeline = Pipeline(self._out, source, self._standing)
        self._endpoint = self._pipeline.endpoint

    @property
    def state(self) -> State:
        """For tests and simulations."""
        return self._standing.state

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """What follows from an event."""
        self._out.begin(now)
        try:
            self._dispatch(event)
        except (StorageFailed, DatabaseDamaged, VersionMismatch) as error:
            self._pipeline.source_failed(error)
        return self._out.finish()

    def _dispatch(self, event: Event) -> None:
        match event:
            case Replied():
                pending = self._endpoint.replied(event)
                if pending is not None:
                    self._pipeline.replied(pending, event.replies)
            case Received(link, message):
                self._received(link, message)
            case TurnEnded():
                self._pipeline.fill()
            case Woke():
                for alarm in self._out.due():
                    self._ring(alarm)
            case Opened(link):
                self._opened(link)
            case Closed():
                pass  # a successor opens it, or the process is told to stop
            case Connected() | Disconnected():
                self._endpoint.changed(event)
            case _:
                assert_never(event)

    def _opened(self, link: str) -> None:
        if link == WRITER_PROJECTOR:
            self._standing.writer_opened()
            self._pipeline.trimming.forget()
        elif link == PROJECTOR_GATEWAY:
            self._standing.tell_gateway()

    def _received(self, link: str, message: Any) -> None:
        match message:
            case Committed():
                self._pipeline.committed(message)
            case Evicted():
                self._pipeline.evicted(message)
            case WriterHello():
                self._pipeline.greeted(message)
            case RedisStatusAsk(ref):
                self._endpoint.measure(ref, self._standing.applied)
            case RedisUp():
                self._endpoint.up(message)
            case RedisDown(reason):
                self._endpoint.down(reason)
            case Stop():
                self._pipeline.stop(message)
            case _:
                self._out.note("warn", "unexpected", link=link, message=type(message).__name__)

    def _ring(self, alarm: str) -> None:
        if alarm in endpoint.ALARMS:
            self._endpoint.ring(alarm)
        elif alarm in pipeline.ALARMS:
            self._pipeline.ring(alarm)
        else:
            self._pipeline.ending.ring(alarm)
