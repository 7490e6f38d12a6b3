"""The sessions of this adapter: registered, given back, told what is theirs.

A session stays wanted until another root conversation takes its place, so that it comes back by
itself after a lost connection. Only subagents are given up for want of room.
"""

from __future__ import annotations

from typing import Final

from agentbus.adapter.identity import Caller, Project, SessionKey
from agentbus.adapter.inbox import Inbox
from agentbus.adapter.link import Link
from agentbus.adapter.reports import Reports
from agentbus.adapter.session import Session, State
from agentbus.client.connection import Answer
from agentbus.wire.rpc import (
    AttachmentParams,
    DeliverNote,
    HeartbeatResult,
    RegisterParams,
    RegisterResult,
)

MAX_SESSIONS: Final = 64


class Sessions:
    """All of them, by key; requests go through the link."""

    def __init__(self, link: Link, agent: str | None, project: Project) -> None:
        self._link = link
        self._agent = agent
        self._project = project
        self._sessions: dict[SessionKey, Session] = {}
        self._instance: str | None = None
        self._root: SessionKey | None = None
        self._registering: dict[int, Session] = {}
        self.reports = Reports(link)

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

    def link_ready(self) -> None:
        """All sessions register; a new bus instance knows nothing of what was before."""
        renewed = self._link.instance != self._instance
        self._instance = self._link.instance
        for each in self._sessions.values():
            if renewed:
                each.inbox = Inbox()
            each.refused_at, each.problem = None, self._project.problem
            self._attach(each)

    def link_lost(self) -> None:
        """No claim outlives its connection."""
        self._registering.clear()
        self.reports.link_lost()
        for each in self._sessions.values():
            each.lose()

    def _attach(self, session: Session) -> None:
        if not self._link.ready or session.problem is not None:
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

    def answered(self, answer: Answer, now: float) -> None:
        """Takes the answers to requests of its own."""
        session = self._registering.pop(answer.request, None)
        if session is not None:
            self._registered(session, answer, now)
        stale = self.reports.answered(answer, now)
        if stale is not None:
            self.stale(stale)
        if isinstance(answer.result, HeartbeatResult):
            self._check_alive(answer.result)

    def _registered(self, session: Session, answer: Answer, now: float) -> None:
        if isinstance(answer.result, RegisterResult):
            if session.released:
                self._give_back(answer.result.attachment)
                return
            session.accept(answer.result, now)
            self.reports.report(session)
        elif answer.error is not None:
            session.refuse(answer.error, now)

    def _give_back(self, attachment: str) -> None:
        self._link.request("release", AttachmentParams(attachment=attachment))

    def _check_alive(self, heartbeat: HeartbeatResult) -> None:
        alive = set(heartbeat.attachments)
        for each in self._sessions.values():
            if each.attachment is not None and each.attachment not in alive:
                self.stale(each)

    def stale(self, session: Session) -> None:
        """The claim is over: the session registers again."""
        if session.state is State.ATTACHED:
            session.lose()
            self._attach(session)

    # messages

    def deliver(self, note: DeliverNote) -> None:
        """What was pushed goes to its session."""
        for each in self._sessions.values():
            if each.attachment == note.attachment:
                each.inbox.deliver(note)
                self.reports.report(each)

    def new_epoch(self, epoch: str, now: float) -> None:
        """Everything prefetched is void."""
        for each in self._sessions.values():
            if each.attachment is not None:
                each.fresh_at = now
                each.inbox.begin(epoch)
                self.reports.report(each)

    # time

    def next_time(self) -> float | None:
        """When `woke` is due."""
        times = [each.retry_at for each in self._sessions.values() if each.state is State.REFUSED]
        times += [each.report_at for each in self._sessions.values() if each.report_at is not None]
        return min(times, default=None)

    def woke(self, now: float) -> None:
        """What is due is done."""
        for each in self._sessions.values():
            if each.state is State.REFUSED and each.retry_at <= now:
                self._attach(each)
            if each.report_at is not None and each.report_at <= now:
                each.report_at = None
                self.reports.report(each)
