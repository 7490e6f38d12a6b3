"""The projection's state, and who has been told what about it."""

from __future__ import annotations

from agentbus.mirror.write import Changes, Mark
from agentbus.model.ids import ChannelId, CommitId
from agentbus.projector import states
from agentbus.projector.outbox import Outbox
from agentbus.projector.states import LIVE, State
from agentbus.projector.tops import Tops
from agentbus.wire.links import (
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Applied,
    ChannelTop,
    Projection,
    Readiness,
    RowInserted,
    Trimmed,
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
        self.search = ""
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
                self.tops.all() if ready else [],
                self.search,
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

    def searchable(self, search: str) -> None:
        """Which index answers searches; empty while none does."""
        if search != self.search:
            self.search = search
            self.tell_gateway()

    def trimmed(self, changes: Changes) -> None:
        """Redis has given up what is below these boundaries, if there are any."""
        self.tops.changed(changes)
        if changes.boundaries and self.state in LIVE:
            channels = [boundary.channel_id for boundary in changes.boundaries]
            self._out.send(PROJECTOR_GATEWAY, Trimmed(self.tops.of(channels)))

    def wrote(self, changes: Changes, after: Mark) -> None:
        """Redis has carried out what led to this mark."""
        self.tops.changed(changes)
        commit_id = after.commit_id
        if commit_id is None:
            return
        self.applied = commit_id
        if self.state in LIVE:
            messages = [
                VisibleMessage(row.channel_id, row.seq, row.session_id, row.envelope)
                for row in changes.messages
            ]
            if changes.created:
                messages += map(_visible, changes.created)
            self._out.send(PROJECTOR_GATEWAY, Visible(commit_id, messages, self._changed(changes)))
        self._out.send(WRITER_PROJECTOR, Applied(commit_id))

    def _changed(self, changes: Changes) -> list[ChannelTop]:
        """What new entries alone do not tell."""
        if changes.only_adds:
            return []
        edited = {row.channel_id for row in changes.edited}
        return self.tops.of(edited | {gone.channel_id for gone in changes.deleted})


def _visible(row: RowInserted) -> VisibleMessage:
    return VisibleMessage(row.channel_id, row.seq, row.session_id, row.envelope, row.memory_id)
