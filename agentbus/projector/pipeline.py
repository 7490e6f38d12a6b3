"""Makes Redis equal to the database and keeps it so.

What is in doubt is cleared behind whatever is in flight, on the same connection, and filled again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final, assert_never

from agentbus.errors import AgentbusError, DatabaseDamaged, Unavailable
from agentbus.mirror import survey, write
from agentbus.mirror.resp import Command, Reply
from agentbus.mirror.write import Mark
from agentbus.model.ids import CommitId
from agentbus.projector import checks, index, recover
from agentbus.projector.checks import Checks
from agentbus.projector.conversation import (
    Check,
    Clear,
    Inspect,
    Measure,
    Pending,
    Prepare,
    Recall,
    Save,
    Settle,
    Snapshot,
    Survey,
    Upkeep,
    Weigh,
    Write,
)
from agentbus.projector.ending import Ending
from agentbus.projector.endpoint import Endpoint
from agentbus.projector.index import Index
from agentbus.projector.live import Live
from agentbus.projector.outbox import Outbox
from agentbus.projector.ports import Source
from agentbus.projector.recover import Purged, Step
from agentbus.projector.standing import Standing
from agentbus.projector.states import LIVE, RECOVERING, State
from agentbus.projector.trimming import Trimming
from agentbus.projector.writes import Writes
from agentbus.wire.links import Committed, Evicted, Stop, WriterHello

SURVEY_CHANNELS: Final = 64
"""Channels asked about in one request; two whole messages come back for each."""

SOURCE_SECONDS: Final = 1.0
REBUILD_SECONDS: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Before the first, second ... clearing in a row that did not lead to ready."""

BEGIN: Final = "begin"
CLEAR: Final = "clear"
ALARMS: Final = (BEGIN, CLEAR, checks.CHECK, index.INDEX)


class Pipeline:
    """Between a writer that has greeted and a server that is fit, when both are there."""

    def __init__(self, out: Outbox, source: Source, standing: Standing) -> None:
        self._out = out
        self._source = source
        self._standing = standing
        self.endpoint = Endpoint(out, self._connected, self._lost)
        self._writes = Writes(self.endpoint.ask, self._documents)
        ask = self._writes.ask
        self.ending = Ending(out, ask)
        self._index = Index(out, ask, standing.searchable)
        self.trimming = Trimming(out, ask, standing.tops, self._index)
        self._live = Live(self.trimming, standing.tops)
        self._checks = Checks(out, ask)
        self._hello: WriterHello | None = None
        self._clearings = 0
        self._redis_reason = "waiting for Redis"

    @property
    def state(self) -> State:
        """Where the projection stands."""
        return self._standing.state

    def ring(self, alarm: str) -> None:
        """One of `ALARMS`."""
        if alarm == BEGIN:
            self._begin()
        elif alarm == CLEAR:
            self._clear()
        elif alarm == index.INDEX:
            self._index.prepare()
        elif self.state is State.READY and self._writes.mark is not None:
            self._checks.look(self._writes.mark)

    # ---- the writer

    def greeted(self, hello: WriterHello) -> None:
        """A writer, the first or a restarted one, says what the database holds."""
        known, self._hello = self._hello, hello
        if self.state is not State.STOPPING:
            try:
                self._source.reopen()
                self._compare(known, hello)
            finally:
                self._standing.writer_greeted()

    def _compare(self, known: WriterHello | None, hello: WriterHello) -> None:
        if self.state is not State.READY or known is None or known.instance != hello.instance:
            self._begin()
        elif self._writes.mark is not None and self._writes.mark.commit_id != hello.commit_id:
            self._missed(self._writes.mark)
        else:  # what it evicted and could not tell
            self._live.evicted(self._source.boundaries())
            self.fill()

    def committed(self, committed: Committed) -> None:
        """Written at the next `fill`; while recovering the database is read, which has it."""
        if (
            self.state in LIVE
            and not self._live.committed(committed)
            and self._writes.mark is not None
        ):
            self._missed(self._writes.mark)

    def evicted(self, evicted: Evicted) -> None:
        """Trimmed, and measured, at the next `fill`; while recovering the database says where
        channels begin, and it is measured afterwards."""
        self.trimming.owe(evicted)
        if self.state in LIVE:
            self._live.evicted(evicted.boundaries, evicted)

    def _missed(self, mark: Mark) -> None:
        """Commits were not heard of: the database has them, behind what is in flight."""
        if self.state is State.READY:  # while stopping, the last look into the database finds them
            self._standing.become(State.CATCHING_UP, "reading commits that were missed")
            self._catch_up(mark)

    # ---- recovery

    def _lost(self, reason: str) -> None:
        self._redis_reason = reason
        self._new_round()
        self._standing.socket_path = self.endpoint.socket_path
        if self.state is State.STOPPING:
            self.ending.end("redis_lost")
        else:
            self._wait()

    def _wait(self) -> None:
        reason = "waiting for the writer" if self._hello is None else self._redis_reason
        self._standing.become(State.WAITING, reason)

    def source_failed(self, error: AgentbusError) -> None:
        """A read of the database failed; it is tried again, all from the beginning.

        What is damaged does not mend: the daemon is to stop and say so.
        """
        self._new_round()
        self._out.note("error", "database", code=error.code, text=error.message)
        if self.state is State.STOPPING:
            self.ending.end("database_lost")
            return
        if isinstance(error, DatabaseDamaged):
            self.ending.fail(error)
            return
        self._standing.become(State.WAITING, f"the database cannot be read: {error.message}")
        self._out.alarm(BEGIN, SOURCE_SECONDS)

    def _new_round(self) -> None:
        """Disowns what is in flight: nothing is known of what Redis holds."""
        self._writes.void()
        for alarm in ALARMS:
            self._out.silence(alarm)

    def _connected(self) -> None:
        """A fit server, maybe another one."""
        self._index.use(self.endpoint.search)
        self._begin()

    def _begin(self) -> None:
        """Asks what Redis holds, once there are a server and a writer."""
        self._new_round()
        self._standing.socket_path = self.endpoint.socket_path
        if self._hello is None or not self.endpoint.is_fit:
            self._wait()
            return
        self._standing.become(State.CATCHING_UP, "asking what Redis holds")
        self._writes.ask([write.RECALL], Recall())

    def _recalled(self, reply: Reply) -> None:
        mark = write.recalled(reply)
        reason = recover.doubt(mark, self._source.head(), self._index.name)
        if mark is None or mark.commit_id is None or reason is not None:
            self._rebuild(reason or "Redis is empty")
            return
        self._standing.recalled(mark.commit_id)
        self._standing.become(State.CATCHING_UP, "catching up")
        self._index.prepare()
        self._survey(mark.commit_id)
        self._catch_up(mark)

    def _survey(self, commit_id: CommitId) -> None:
        channels = self._source.channel_infos()
        self._standing.tops.start(channel.id for channel in channels)
        for first in range(0, len(channels), SURVEY_CHANNELS):
            asked = channels[first : first + SURVEY_CHANNELS]
            commands = [command for channel in asked for command in survey.commands(channel.id)]
            self._writes.ask(commands, Survey(asked, commit_id))

    def _surveyed(self, asked: Survey, replies: list[Reply]) -> None:
        size = survey.COMMANDS
        try:
            for number, channel in enumerate(asked.channels):
                found = survey.read(replies[number * size : (number + 1) * size])
                top = recover.verified(self._source, channel, found, asked.commit_id)
                if top is None:
                    self._rebuild(f"the stream of channel {channel.id} is not what was written")
                    return
                self._standing.tops.found(top)
        except Unavailable as error:
            self._rebuild(error.message)

    def _catch_up(self, mark: Mark) -> None:
        assert mark.commit_id is not None
        self._writes.start(mark, recover.catch_up(self._source, mark, mark.commit_id))
        self.fill()

    def _rebuild(self, reason: str) -> None:
        """Whatever Redis holds, it is not to be trusted."""
        self._new_round()
        self._out.note("warn", "rebuild", reason=reason)
        if self.state is State.STOPPING:
            self.ending.end("redis_in_doubt")
            return
        self._standing.become(State.REBUILDING, f"rebuilding: {reason}")
        pause = REBUILD_SECONDS[min(self._clearings, len(REBUILD_SECONDS) - 1)]
        self._clearings += 1
        if pause:
            self._out.alarm(CLEAR, pause)
        else:
            self._clear()

    def _clear(self) -> None:
        head = self._source.head()
        self._standing.cleared([channel.id for channel in self._source.channel_infos()])
        target = recover.mark_of(head, self._index.name)
        mark = target.rebuilding(0)
        self._writes.ask(write.clear(mark), Clear())
        self._index.cleared()
        self._writes.start(mark, recover.rebuild(self._source, target, head.commit_id))
        self.fill()

    def _recovered(self, mark: Mark) -> None:
        """Every step was taken; the database may have gone on meanwhile."""
        head = self._source.head()
        if mark != recover.mark_of(head, self._index.name):
            if recover.doubt(mark, head, self._index.name) is None:
                self._go_on(mark)
            else:
                self._rebuild("the database is another one now")
        elif self.state is State.STOPPING:
            self.ending.current()
        else:
            self._trim_to_database(mark)

    def _go_on(self, mark: Mark) -> None:
        """To what the database has beyond the mark; that it has something, its head has said."""
        assert mark.commit_id is not None
        steps = recover.catch_up(self._source, mark, mark.commit_id)
        try:
            first = next(steps, None)
        except Purged as error:
            self._rebuild(str(error))
            return
        if first is None or first.after == mark:
            self._rebuild("the database does not tell what it has committed since")
        else:
            self._writes.start(mark, chain([first], steps))
            self.fill()

    def _trim_to_database(self, mark: Mark) -> None:
        """What was evicted while nobody told us goes before anything is served."""
        boundaries = self._source.boundaries()
        if self._standing.tops.below(boundaries):
            self._writes.take(self.trimming.steps(boundaries, mark))
            self.fill()
        else:
            self._standing.tops.bounded(boundaries)
            self._current(mark.commit_id)

    def _current(self, commit_id: CommitId | None) -> None:
        """Redis equals the database."""
        assert commit_id is not None
        self._writes.take(None)
        self._clearings = 0
        self._live.start(commit_id)
        self._standing.become(State.READY)
        self._checks.begin()
        self.trimming.weigh(commit_id)

    # ---- writing

    def fill(self) -> None:
        """Writes as much as may be in flight, of what recovery or the writer have."""
        writes = self._writes
        try:
            writes.go_on(self._next_live if self.state in LIVE else None)
        except Purged as error:
            self._rebuild(str(error))
            return
        if writes.mark is not None and not writes.in_flight and self._is_to_compare():
            self._recovered(writes.mark)

    def _next_live(self, mark: Mark) -> Step | None:
        return self._live.next(mark, idle=not self._writes.in_flight)

    def _documents(self, step: Step) -> Sequence[Command]:
        if not self._index.is_there:
            return step.removals
        return [*step.removals, *self._index.documents(step.changes)]

    def _is_to_compare(self) -> bool:
        """Whether, with nothing left to write, the database is to be asked if that is all."""
        return self.state in RECOVERING or (
            self.state is State.STOPPING and not self.ending.is_settling
        )

    def replied(self, pending: Pending, replies: list[Reply]) -> None:
        """What Redis said to a request of ours."""
        if not self._writes.is_answered(pending):
            return
        match pending.purpose:
            case Write(before, step):
                self._wrote(before, step, replies)
            case Recall():
                self._recalled(replies[0])
            case Survey():
                self._surveyed(pending.purpose, replies)
            case Clear():
                self._cleared(replies)
            case _:
                self._upkept(pending.purpose, replies)
        self.fill()

    def _upkept(self, purpose: Upkeep, replies: list[Reply]) -> None:
        match purpose:
            case Check(mark):
                self._checked(mark, replies)
            case Weigh():
                self.trimming.weighed(purpose, replies[0])
            case Prepare():
                self._index.prepared(replies)
            case Snapshot():
                self._checks.snapshot_begun(replies[0])
            case Settle() | Save():
                self.ending.replied(purpose, replies[0])
            case Inspect() | Measure():
                pass  # the endpoint's own
            case _:
                assert_never(purpose)

    def _cleared(self, replies: list[Reply]) -> None:
        reason = write.refusal(replies, None)
        if reason is not None:
            self._rebuild(reason)

    def _wrote(self, before: Mark, step: Step, replies: list[Reply]) -> None:
        whole = write.is_transaction(step.after)
        reason = write.refusal(replies, before, transaction=whole)
        if reason is not None:
            self._rebuild(reason)
        elif step.after == before:
            self._standing.trimmed(step.changes)
            if step.asked is not None and before.commit_id is not None:
                self.trimming.weigh(before.commit_id, step.asked)
        else:
            self._standing.wrote(step.changes, step.after)

    def _checked(self, mark: Mark, replies: list[Reply]) -> None:
        reason = self._checks.looked(mark, replies)
        if reason is not None:
            self._rebuild(reason)

    def stop(self, stop: Stop) -> None:
        """The last commits, a snapshot, the end; without delay where Redis isn't current anyway."""
        if self.state is State.READY:
            self.ending.begin(stop)
            self._standing.become(State.STOPPING, "stopping")
            self.fill()
        elif self.state is not State.STOPPING:
            self.ending.end("not_ready")
