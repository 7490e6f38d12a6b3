"""The sessions of this adapter: registered, given back, told what is theirs.

A session stays wanted until another root conversation takes its place, so that it comes back by
itself after a lost connection. Only subagents are given up for want of room.
"""

from __future__ import annotations

from typing import Final

from agentbus.adapter.identity import Caller, Project, SessionKey
from agentbus.adapter.link import Link
from agentbus.adapter.reports import Reports
from agentbus.adapter.session import Session, State
from agentbus.adapter.stream import Entry
from agentbus.client.connection import Answer
from agentbus.config import KIB, MIB, Settings
from agentbus.wire.rpc import (
    AttachmentParams,
    DeliverNote,
    HeartbeatResult,
    RegisterParams,
    RegisterResult,
    ReviseNote,
    RevokeNote,
)

MAX_SESSIONS: Final = 64


class Sessions:
    """All of them, by key; requests go through the link."""

    def __init__(self, link: Link, agent: str | None, project: Project, settings: Settings) -> None:
        self._link = link
        self._settings = settings
        self._agent = agent
        self._project = project
        self._sessions: dict[SessionKey, Session] = {}
        self._instance: str | None = None
        self._root: SessionKey | None = None
        self._registering: dict[int, Session] = {}
        self.reports = Reports(link)

    @property
    def window_is_full(self) -> bool:
        """Whether the daemon had pushed as much as it may, so that there may be more."""
        peaks = [session.inbox.peak for session in self._sessions.values()]
        count, size = sum(count for count, _ in peaks), sum(size for _, size in peaks)
        settings = self._settings
        window = settings.prefetch_mib * MIB
        room = window - min(settings.max_message_kib * KIB, window // 4)
        return count >= settings.prefetch_messages or size > room

    # who is there

    def want(self, caller: Caller, now: float) -> Session:
        """The session of a caller; a new root conversation takes the place of the last one."""
        root = SessionKey(caller.key.application, caller.key.native)
        if self._root is not None and root != self._root:
            for each in list(self._sessions.values()):
                self._release(each)
        self._root = root
        session = self._sessions.pop(caller.key, None)
        if session is None:
            self._make_room()
            session = Session(caller, self._project.hint)
        self._sessions[caller.key] = session
        session.problem = self._project.problem
        if session.state is State.DETACHED:
            self._attach(session)
        elif session.state is State.REFUSED:
            session.retry_at = min(session.retry_at, now)
        return session

    def _make_room(self) -> None:
        """The subagent that was idle for longest goes."""
        children = [each for each in self._sessions.values() if each.key.child is not None]
        if len(self._sessions) >= MAX_SESSIONS and children:
            self._release(children[0])

    def _release(self, session: Session) -> None:
        del self._sessions[session.key]
        session.released = True
        if session.attachment is not None and self._link.ready:
            self.reports.report(session)
            self._give_back(session.attachment)
        session.state = State.DETACHED

    # the link

    def link_ready(self, now: float) -> bool:
        """All sessions register; whether the bus is another than before."""
        renewed = self._is_another(self._link.instance, now)
        for each in self._sessions.values():
            each.refused_at, each.problem = None, self._project.problem
            self._attach(each)
        return renewed

    def _is_another(self, instance: str | None, now: float) -> bool:
        """A new bus instance knows nothing of what was before, and is told nothing of it."""
        known, self._instance = self._instance, instance or self._instance
        if known in (None, self._instance):
            return False
        for each in self._sessions.values():
            each.reset()
            self.stale(each, now)
        return True

    def link_lost(self) -> None:
        """No claim outlives its connection."""
        self._registering.clear()
        self.reports.link_lost()
        for each in self._sessions.values():
            each.lose()

    def _attach(self, session: Session) -> None:
        """Not while a claim is under way that is to be given back: it may hold the name."""
        leaving = any(each.released for each in self._registering.values())
        if leaving or not self._link.ready or session.problem is not None:
            return
        session.state = State.ATTACHING
        key, project = session.key, self._project
        number = self._link.request(
            "register",
            RegisterParams(
                application=key.application,
                session=key.native,
                agent=self._agent or project.agent,
                child=key.child,
                parent=key.native if key.child is not None else None,
                role=session.role if key.child is not None else None,
                repository=project.hint,
                repository_root=project.root,
                channels=project.channels,
                again=session.facts is not None,
            ),
        )
        self._registering[number] = session

    # answers

    def answered(self, answer: Answer, now: float) -> bool:
        """Takes the answers to requests of its own; whether the bus turned out to be another."""
        renewed = False
        session = self._registering.pop(answer.request, None)
        if session is not None:
            renewed = self._registered(session, answer, now)
        stale = self.reports.answered(answer, now)
        if stale is not None:
            self.stale(stale, now)
        if isinstance(answer.result, HeartbeatResult):
            self._check_alive(answer.result, now)
        return renewed

    def _registered(self, session: Session, answer: Answer, now: float) -> bool:
        if answer.error is not None:
            session.refuse(answer.error, now)
            self._attach_waiting()
        if not isinstance(answer.result, RegisterResult):
            return False
        renewed = self._is_another(answer.result.instance, now)
        if session.released:
            self._give_back(answer.result.attachment)
            self._attach_waiting()
            return renewed
        session.accept(answer.result, now)
        self.reports.report(session)
        return renewed

    def _attach_waiting(self) -> None:
        for each in self._sessions.values():
            if each.state is State.DETACHED:
                self._attach(each)

    def _give_back(self, attachment: str) -> None:
        self._link.request("release", AttachmentParams(attachment=attachment))

    def _check_alive(self, heartbeat: HeartbeatResult, now: float) -> None:
        alive = set(heartbeat.attachments)
        for each in self._sessions.values():
            if each.attachment is not None and each.attachment not in alive:
                self.stale(each, now)

    def stale(self, session: Session, now: float) -> None:
        """The claim is over: the session registers again, sooner or later."""
        if session.state is State.ATTACHED and session.end_claim(now):
            self._attach(session)

    # what the daemon tells

    def holder(self, attachment: str) -> Session | None:
        """The session that has this claim."""
        found = (each for each in self._sessions.values() if each.attachment == attachment)
        return next(found, None)

    @property
    def root(self) -> Session | None:
        """The session of the root conversation, where it has called or is expected to."""
        return None if self._root is None else self._sessions.get(self._root)

    def deliver(self, note: DeliverNote) -> None:
        """What was pushed goes to its session."""
        session = self.holder(note.attachment)
        if session is not None:
            session.inbox.deliver(note)
            if note.expired:
                session.expired(note.subscription)
            self.reports.report(session)

    def revise(self, note: ReviseNote | RevokeNote) -> list[Entry]:
        """A memory that a session may hold has changed; gives what of it is being written."""
        session = self.holder(note.attachment)
        if session is None:
            return []
        session.notices.supersede(note.memory_id)
        entries = session.inbox.revise(note)
        self.reports.report(session)
        return entries

    def new_epoch(self, epoch: str, now: float) -> None:
        """Everything prefetched is void."""
        for each in self._sessions.values():
            if each.attachment is not None:
                each.fresh_at = now
                each.inbox.begin(epoch)
                self.reports.report(each)

    # time

    def overslept(self, seconds: float) -> None:
        """Somebody else's claim had no chance to expire meanwhile."""
        for each in self._sessions.values():
            if each.refused_at is not None:
                each.refused_at += seconds

    def leapt(self) -> None:
        """More time has passed than was seen: no renewal is recent any more."""
        for each in self._sessions.values():
            each.renewed_at = None

    def next_time(self) -> float | None:
        """When `woke` is due."""
        times: list[float] = []
        for each in self._sessions.values():
            if each.state is State.REFUSED:
                times.append(each.retry_at)
            if each.report_at is not None:
                times.append(each.report_at)
        return min(times, default=None)

    def woke(self, now: float) -> None:
        """What is due is done."""
        for each in self._sessions.values():
            if each.state is State.REFUSED and each.retry_at <= now:
                self._attach(each)
            if each.report_at is not None and each.report_at <= now:
                each.report_at = None
                self.reports.report(each)
