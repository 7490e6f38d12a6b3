"""What the daemon's other processes say, and their coming and going."""

from __future__ import annotations

from typing import Any, Final, assert_never

from agentbus.gateway import replies
from agentbus.gateway.events import Serving, UseRedis
from agentbus.gateway.parts import Parts
from agentbus.gateway.stopping import Stopping
from agentbus.model.ids import CommitId
from agentbus.wire.error_codes import from_failure
from agentbus.wire.events import Closed, Opened, Received
from agentbus.wire.links import (
    GATEWAY_INDEXER,
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    CapacityWarning,
    ChannelOpened,
    CursorsExpired,
    IndexState,
    MemoryChanged,
    Outcomes,
    Processes,
    Projection,
    RedisDown,
    RedisStatus,
    RedisUp,
    SearchFound,
    SearchRefused,
    Stop,
    Trimmed,
    Visible,
    Welcome,
    WriterHindered,
)

READY_SECONDS: Final = 5.0
"""The daemon is said to be ready once messages pass, or when recovery has taken so long."""

UNREADY: Final = "not ready yet"
"""Name of the alarm for that."""


class DaemonLinks:
    """Writer, projector and supervisor, as the gateway hears them."""

    def __init__(self, parts: Parts, stopping: Stopping) -> None:
        self._parts = parts
        self._stopping = stopping
        self._redis: str | None = None
        self._serving = False
        parts.bells[UNREADY] = self._serve

    def heard(self, event: Received | Opened | Closed) -> None:
        """One event of a link."""
        match event:
            case Received():
                self._received(event.message)
            case Opened():
                self._opened(event.link)
            case Closed():
                self._closed(event.link)
            case _:
                assert_never(event)

    def _opened(self, link: str) -> None:
        if link == GATEWAY_WRITER:
            self._parts.writer.opened()
        elif link == PROJECTOR_GATEWAY:
            self._parts.status.projector = True

    def _closed(self, link: str) -> None:
        if link == GATEWAY_WRITER:
            self._parts.writer.closed()
        elif link == PROJECTOR_GATEWAY:
            self._parts.condition.unprojected()
            self._parts.status.projector = False
        elif link == GATEWAY_INDEXER:
            self._parts.searching.closed()
            return
        self._parts.status.closed(link)
        self._parts.admission.drop_all()

    def _received(self, message: Any) -> None:
        """Every kind of frame that a gateway is sent has its case; the most frequent come first."""
        match message:
            case Visible():
                self._visible(message)
            case Outcomes():
                self._parts.condition.committed = message.commit_id
                self._parts.answers.batch(message)
            case _:
                self._received_now_and_then(message)

    def _received_now_and_then(self, message: Any) -> None:
        match message:
            case Projection():
                self._projected(message)
            case Welcome():
                self._welcomed(message)
            case ChannelOpened():
                self._parts.channels.opened(message.channel)
            case RedisStatus():
                self._parts.status.redis_told(message)
            case MemoryChanged():
                self._parts.memories.changed(message)
            case Trimmed():
                self._trimmed(message)
            case CursorsExpired():
                self._parts.farewells.expired(message)
            case CapacityWarning():
                self._parts.alerts.capacity(message)
            case _:
                self._received_seldom(message)

    def _received_seldom(self, message: Any) -> None:
        match message:
            case IndexState():
                self._parts.searching.indexed(message)
            case SearchFound() | SearchRefused():
                self._parts.searching.answered(message)
            case Processes():
                self._parts.status.processes = message.processes
                self._parts.condition.given_up = frozenset(message.given_up)
            case WriterHindered():
                self._hindered(message)
            case Stop():
                self._stopping.begin()
            case RedisUp() | RedisDown():
                pass  # the projector says when the server is of use
            case _:
                raise TypeError(f"a gateway is not sent {type(message).__name__}")

    def _hindered(self, frame: WriterHindered) -> None:
        if not self._parts.condition.writer:
            self._parts.condition.hindrance = frame.failure.message
            self._parts.greeter.refuse(from_failure(frame.failure))
            self._parts.writer.hindered()

    def _visible(self, frame: Visible) -> None:
        parts = self._parts
        current = parts.condition.is_current
        parts.pusher.visible(frame)
        parts.channels.surveyed(frame.channels)
        parts.condition.visible = frame.commit_id
        self._advanced(frame.commit_id)
        if not current and parts.condition.is_current:
            parts.pusher.ready(parts.connections.values())

    def _advanced(self, commit: CommitId) -> None:
        """Everything up to a commit can be read."""
        parts = self._parts
        parts.reads.visible(commit)
        parts.admission.visible(commit)
        parts.visibility.advanced()
        parts.searching.visible()

    def _trimmed(self, frame: Trimmed) -> None:
        self._parts.channels.surveyed(frame.channels)
        self._parts.pusher.trimmed([top.channel_id for top in frame.channels])

    def _welcomed(self, frame: Welcome) -> None:
        parts = self._parts
        condition = parts.condition
        first = not condition.instance
        known = (condition.instance, condition.incarnation)
        if not first and known != (frame.instance, frame.incarnation):
            parts.attachments.void(parts.connections.values())
            parts.pusher.forget()
        condition.welcomed(frame)
        parts.writer.welcomed()
        for info in frame.channels:
            parts.channels.opened(info)
        self._look_for_emptied()
        if condition.doubtful:
            condition.begin_epoch()
            self._begin_epoch()
        if first:
            parts.greeter.known()
            parts.alarms.set(UNREADY, parts.alarms.now + READY_SECONDS)
            self._serve_if_ready()

    def _serve_if_ready(self) -> None:
        if self._parts.condition.state == "ready":
            self._serve()

    def _serve(self) -> None:
        if not self._serving:
            self._serving = True
            self._parts.alarms.set(UNREADY, None)
            self._parts.out.effects.append(Serving())

    def _projected(self, frame: Projection) -> None:
        parts = self._parts
        begins = parts.condition.projected(frame)
        if frame.socket_path != self._redis:
            self._redis = frame.socket_path
            parts.out.effects.append(UseRedis(frame.socket_path))
        if begins:
            self._begin_epoch()
        parts.searching.projected(frame.search)
        if not frame.ready:
            parts.admission.drop_all()
            return
        self._serve_if_ready()
        parts.channels.surveyed(frame.channels)
        self._look_for_emptied()
        parts.pusher.ready(parts.connections.values())
        self._advanced(frame.commit_id)

    def _look_for_emptied(self) -> None:
        """What the writer told of and the projection does not hold, was removed by retention."""
        condition = self._parts.condition
        if condition.writer and condition.ready and condition.is_current:
            self._parts.channels.emptied()

    def _begin_epoch(self) -> None:
        parts = self._parts
        note = replies.epoch(parts.condition.epoch)
        for connection in parts.connections.values():
            if connection.greeted:
                parts.out.line(connection, note)
        parts.pusher.begin_epoch(parts.connections.values())
        parts.farewells.begin_epoch()
