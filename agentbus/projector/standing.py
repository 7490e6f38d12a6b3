"""The projection's state, and who has been told what about it."""

from __future__ import annotations

from agentbus.mirror.write import Mark
from agentbus.model.ids import ChannelId, CommitId
from agentbus.projector import states
from agentbus.projector.outbox import Outbox
from agentbus.projector.project import Tops
from agentbus.projector.states import LIVE, State
from agentbus.wire.links import (
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Applied,
    Projection,
    Readiness,
    RowInserted,
    Visible,
    VisibleMessage,
)

UNGREETED = "waiting for the writer's greeting"


class Standing:
    """`applied` is what Redis is known to hold, `rebuilds` counts the clearings of this process."""

    def __init__(self, out: Outbox, boot: str) -> None:
        self._out = out
        self._boot = boot
        self._greeted = False
        self._told_writer: Readiness | None = None
        self.state = State.WAITING
        self.reason = "starting"
        self.applied = CommitId(0)
        self.rebuilds = 0
        self.socket_path: str | None = None
        self.tops = Tops()

    def become(self, state: State, reason: str = "") -> None:
        """The only place where the state changes. The reason is empty only when ready."""
        states.check(self.state, state)
        if (state, reason) == (self.state, self.reason):
            return
        self.state, self.reason = state, reason
        self._out.note("info", "projection", state=state.value, reason=reason)
        self._tell_writer()
        self.tell_gateway()

    # ---- the writer

    def writer_opened(self) -> None:
        """A link to a writer that has not greeted."""
        self._greeted = False
        self._told_writer = None
        self._tell_writer()

    def writer_greeted(self) -> None:
        """What it holds has been compared with what is applied, or will be."""
        self._greeted = True
        self._tell_writer()

    def _tell_writer(self) -> None:
        ready = self.state is State.READY
        if ready and not self._greeted:
            message = Readiness(False, UNGREETED)
        else:
            message = Readiness(ready, self.reason)
        if message != self._told_writer:
            self._told_writer = message
            self._out.send(WRITER_PROJECTOR, message)

    # ---- the gateway

    def tell_gateway(self) -> None:
        """The whole state, also for a gateway that has just come."""
        ready = self.state is State.READY
        self._out.send(
            PROJECTOR_GATEWAY,
            Projection(
                self._boot,
                ready,
                self.reason,
                self.rebuilds,
                self.applied,
                self.socket_path,
                self.tops.list() if ready else [],
            ),
        )

    # ---- both

    def recalled(self, commit_id: CommitId) -> None:
        """Redis was found to hold this."""
        self.applied = commit_id
        self._out.send(WRITER_PROJECTOR, Applied(commit_id))

    def cleared(self, channels: list[ChannelId]) -> None:
        """Redis is emptied of these channels, and a new epoch begins when it is filled again."""
        self.rebuilds += 1
        self.applied = CommitId(0)
        self.tops.start(channels)

    def wrote(self, rows: list[RowInserted], after: Mark) -> None:
        """Redis has carried out a step."""
        self.tops.add(rows)
        commit_id = after.commit_id
        if commit_id is None:
            return
        self.applied = commit_id
        if self.state in LIVE:
            messages = [
                VisibleMessage(row.channel_id, row.seq, row.session_id, row.envelope)
                for row in rows
            ]
            self._out.send(PROJECTOR_GATEWAY, Visible(commit_id, messages))
        self._out.send(WRITER_PROJECTOR, Applied(commit_id))
