"""Gathering what `status` tells: asks the other processes, waits for them only so long, and answers
everybody who asked in the meantime alike."""

from __future__ import annotations

from functools import partial
from typing import Final

from agentbus.config import Settings
from agentbus.errors import AgentbusError, StorageFailed
from agentbus.gateway.admission import Admission
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.alerts import Alerts
from agentbus.gateway.channels import Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Call, Connection, attachments_of
from agentbus.gateway.events import Measure, Measured, StreamRead
from agentbus.gateway.metrics import Metrics
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.reads import Reads
from agentbus.gateway.searching import Searching
from agentbus.gateway.status_document import Facts, document, next_undelivered
from agentbus.mirror.read import sent_at
from agentbus.model.ids import AttachmentId, ChannelId, Seq
from agentbus.runtime.paths import log_file
from agentbus.wire.links import (
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    ProcessInfo,
    RedisStatus,
    RedisStatusAsk,
    StatusAsk,
    WriterStatus,
)
from agentbus.wire.rpc import Empty, StatusResult

PATIENCE_SECONDS: Final = 1.0
LOOKED_AT: Final = 128
"""Subscriptions whose oldest undelivered message is looked up."""

DEGRADED_SECONDS: Final = 60.0
LATE: Final = "status"
"""Name of the alarm at which `finish` is due."""

Place = tuple[ChannelId, Seq]
"""A channel, and a position after which to look."""


class _Gathering:
    """What has come in for one answer; `missing` are the `ref`s of what has not."""

    def __init__(self, call: Call) -> None:
        self.calls = [call]
        self.missing: set[int] = set()
        self.asked: dict[str, int] = {}
        """The `ref` that went over a link."""
        self.writer: WriterStatus | None = None
        self.redis: RedisStatus | None = None
        self.measured: Measured | None = None
        self.oldest: dict[Place, str] = {}
        self.looked = False


class StatusDesk:
    """The method `status`."""

    def __init__(
        self,
        out: Outbox,
        alarms: Alarms,
        condition: Condition,
        channels: Channels,
        reads: Reads,
        admission: Admission,
        metrics: Metrics,
        searching: Searching,
        alerts: Alerts,
        connections: dict[int, Connection],
        settings: Settings,
        config_path: str,
    ) -> None:
        self._out = out
        self._alarms = alarms
        self._condition = condition
        self._channels = channels
        self._reads = reads
        self._admission = admission
        self._metrics = metrics
        self._searching = searching
        self._alerts = alerts
        self._connections = connections
        self._settings = settings
        self._config_path = config_path
        self.processes: list[ProcessInfo] = []
        self.projector = False
        """Whether there is a link to it."""
        self._now: _Gathering | None = None
        self._storage_failure: tuple[float, str] | None = None

    # ---- asking

    def status(self, call: Call, _params: Empty) -> None:
        """Begins to gather, or joins."""
        if self._now is not None:
            self._now.calls.append(call)
            return
        self._now = gathering = _Gathering(call)
        if self._condition.writer:
            self._ask(gathering, GATEWAY_WRITER, StatusAsk)
        if self.projector:
            self._ask(gathering, PROJECTOR_GATEWAY, RedisStatusAsk)
        pids = [process.pid for process in self.processes]
        self._out.effects.append(Measure(self._expect(gathering), pids))
        self._alarms.set(LATE, self._alarms.now + PATIENCE_SECONDS)

    def _expect(self, gathering: _Gathering) -> int:
        ref = self._out.ref()
        gathering.missing.add(ref)
        return ref

    def _ask(
        self, gathering: _Gathering, link: str, question: type[StatusAsk | RedisStatusAsk]
    ) -> None:
        gathering.asked[link] = ref = self._expect(gathering)
        self._out.send(link, question(ref))

    # ---- answers

    def writer_told(self, told: WriterStatus) -> None:
        """The writer's part."""
        if self._now is not None and told.ref in self._now.missing:
            self._now.writer = told
            self._came(self._now, told.ref)

    def redis_told(self, told: RedisStatus) -> None:
        """The projector's part."""
        if self._now is not None and told.ref in self._now.missing:
            self._now.redis = told
            self._came(self._now, told.ref)

    def measured(self, told: Measured) -> None:
        """The shell's part."""
        if self._now is not None and told.ref in self._now.missing:
            self._now.measured = told
            self._came(self._now, told.ref)

    def refused(self, ref: int) -> None:
        """Somebody would not say."""
        if self._now is not None and ref in self._now.missing:
            self._came(self._now, ref)

    def closed(self, link: str) -> None:
        """Whoever was asked over this link will not answer."""
        if self._now is not None:
            self.refused(self._now.asked.get(link, 0))

    def _came(self, gathering: _Gathering, ref: int) -> None:
        gathering.missing.discard(ref)
        if not gathering.missing and not gathering.looked:
            self._look(gathering)
        if not gathering.missing:
            self.finish()

    def _look(self, gathering: _Gathering) -> None:
        """Has the oldest undelivered messages read, for their age."""
        gathering.looked = True
        if gathering.writer is None or not self._condition.ready:
            return
        wanted = next_undelivered(gathering.writer, self._channels, self._attachments())
        for place in list(dict.fromkeys(wanted))[:LOOKED_AT]:
            then = partial(self._looked, gathering, place)
            gathering.missing.add(self._reads.read(place[0], place[1], (1, 1), then))

    def _looked(self, gathering: _Gathering, place: Place, reply: StreamRead) -> None:
        if reply.entries:
            gathering.oldest[place] = sent_at(reply.entries[0].envelope)
        if gathering is self._now:
            self._came(gathering, reply.ref)

    # ---- telling

    def finish(self) -> None:
        """Answers with what there is."""
        gathering, self._now = self._now, None
        self._alarms.set(LATE, None)
        if gathering is None:
            return
        result = StatusResult(status=document(self._facts(gathering)))
        self._out.answer_all(gathering.calls, result)

    def storage_failed(self, error: AgentbusError) -> None:
        """Keeps a failure of the writer's, to be told for a while."""
        if isinstance(error, StorageFailed):
            self._storage_failure = (self._alarms.now, error.message)

    def _degraded(self) -> list[str]:
        log = log_file(self._settings, "supervisor")
        reasons = [
            f"the {name} died too often and is not started again: what it does is not there until "
            f"the daemon is started anew; {log} and its own log say why"
            for name in sorted(self._condition.given_up)
        ]
        if self._storage_failure is not None:
            at, text = self._storage_failure
            if self._alarms.now <= at + DEGRADED_SECONDS:
                reasons.append(f"a commit failed within the last minute: {text}")
        return reasons

    def _attachments(self) -> dict[AttachmentId, Attachment]:
        return {each.id: each for each in attachments_of(self._connections)}

    def _facts(self, gathering: _Gathering) -> Facts:
        return Facts(
            now=self._alarms.instant,
            condition=self._condition,
            settings=self._settings,
            config_path=self._config_path,
            processes=self.processes,
            usages=gathering.measured.usages if gathering.measured else {},
            writer=gathering.writer,
            redis=gathering.redis,
            channels=self._channels,
            attachments=self._attachments(),
            oldest=gathering.oldest,
            metrics=self._metrics,
            rejected=self._admission.rejected,
            index=self._searching.index,
            alerts=self._alerts.shown(),
            degraded=self._degraded(),
        )
