"""The sessions that this adapter holds or wants: claims, names, subscriptions, inboxes.

    state        event                           next
    detached     link ready                      attaching    register
    attaching    registered                      attached
                 session_already_connected       refused      tried again until the other expires
                 another retryable error         refused      tried again
                 another error                   detached     `problem`
    refused      its time                        attaching    register
    attached     stale_attachment, not alive     attaching    register
    any          link lost                       detached

A session stays wanted until another root takes its place, so that it comes back by itself after a
lost connection. Only subagents are given up for want of room.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from agentbus.adapter.identity import Caller, Project, SessionKey
from agentbus.adapter.inbox import Inbox
from agentbus.adapter.link import Link
from agentbus.client.connection import Answer
from agentbus.errors import AgentbusError, SessionAlreadyConnected, StaleAttachment
from agentbus.wire.rpc import (
    AttachmentParams,
    DeliveredParams,
    DeliverNote,
    HeartbeatResult,
    RegisterParams,
    RegisterResult,
    RenewResult,
    SubscribeResult,
    Subscription,
    UnsubscribeResult,
)

EXPIRY_SECONDS: Final = 30.0
"""After so long without a heartbeat another claim on a session has ended."""

FIRST_DELAY: Final = 0.2
LONGEST_DELAY: Final = 2.0
RENEW_SECONDS: Final = 60.0
REPORT_AGAIN_SECONDS: Final = 0.5
MAX_SESSIONS: Final = 64


class State(enum.Enum):
    """See the table."""

    DETACHED = "detached"
    ATTACHING = "attaching"
    REFUSED = "refused"
    ATTACHED = "attached"


class Session:
    """One session; its owner moves it."""

    def __init__(self, caller: Caller, repository: str | None) -> None:
        self.key = caller.key
        self.role = caller.role
        self.repository = repository
        self.state = State.DETACHED
        self.inbox = Inbox()
        self.facts: RegisterResult | None = None
        self.subscriptions: dict[str, Subscription] = {}
        self.problem: AgentbusError | None = None
        self.fresh_at = 0.0
        """When the claim or its epoch began."""
        self.refused_at: float | None = None
        self.retry_at = 0.0
        self.delay = FIRST_DELAY
        self.renewed_at: float | None = None
        self.report_at: float | None = None
        self.released = False

    @property
    def attachment(self) -> str | None:
        """What requests name; None while there is no claim."""
        if self.state is State.ATTACHED and self.facts is not None:
            return self.facts.attachment
        return None

    @property
    def refusal_ends(self) -> float:
        """Until when somebody else's claim is waited out, with room for the last try."""
        if self.refused_at is None or self.state is State.ATTACHED:
            return 0.0
        return self.refused_at + EXPIRY_SECONDS + 2 * LONGEST_DELAY

    def accept(self, result: RegisterResult, now: float) -> None:
        """The claim is made."""
        self.state = State.ATTACHED
        self.fresh_at = now
        self.facts = result
        self.refused_at = None
        self.delay = FIRST_DELAY
        self.subscriptions = {each.channel: each for each in result.subscriptions}
        self.inbox.attach(result.epoch, result.subscriptions)

    def subscribed(self, result: SubscribeResult) -> None:
        """A subscription was made, renewed, or found."""
        self.subscriptions[result.channel] = Subscription(
            subscription=result.subscription,
            channel=result.channel,
            position=result.position,
            expires_at=result.expires_at,
            include_own=result.include_own,
        )
        self.inbox.subscribed(result.subscription, result.channel, result.position)

    def unsubscribed(self, result: UnsubscribeResult) -> None:
        """A subscription is gone."""
        self.subscriptions.pop(result.channel, None)
        self.inbox.unsubscribed(result.channel)

    def current_subscriptions(self) -> list[Subscription]:
        """With the positions that were confirmed last."""
        return [
            msgspec.structs.replace(
                each, position=max(each.position, self.inbox.position(each.subscription) or 0)
            )
            for each in self.subscriptions.values()
        ]


class _Report(msgspec.Struct, frozen=True, eq=False):
    session: Session
    attachment: str
    epoch: str
    positions: list[tuple[int, int]]


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
        self._reporting: dict[int, _Report] = {}
        self._renewing: dict[int, Session] = {}

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
            self.report(session)
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
            each.refused_at = None
            self._attach(each)

    def link_lost(self) -> None:
        """No claim outlives its connection."""
        self._registering.clear()
        self._renewing.clear()
        for report in self._reporting.values():
            report.session.inbox.unreport(report.positions)
        self._reporting.clear()
        for each in self._sessions.values():
            self._lose(each)

    @staticmethod
    def _lose(session: Session) -> None:
        session.state = State.DETACHED
        session.inbox.detach()
        session.report_at = None

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
            ),
        )
        self._registering[number] = session

    # answers

    def answered(self, answer: Answer, now: float) -> Session | None:
        """Takes the answers to requests of its own; the session that it changed, if any."""
        if answer.request in self._registering:
            session = self._registering.pop(answer.request)
            self._registered(session, answer, now)
            return session
        if answer.request in self._reporting:
            self._reported(self._reporting.pop(answer.request), answer, now)
        elif answer.request in self._renewing:
            session = self._renewing.pop(answer.request)
            if isinstance(answer.result, RenewResult):
                session.subscriptions = {each.channel: each for each in answer.result.subscriptions}
        elif isinstance(answer.result, HeartbeatResult):
            self._check_alive(answer.result)
        return None

    def _registered(self, session: Session, answer: Answer, now: float) -> None:
        if isinstance(answer.result, RegisterResult):
            if session.released:
                self._give_back(answer.result.attachment)
                return
            session.accept(answer.result, now)
            self.report(session)
        elif answer.error is not None:
            self._refused(session, answer.error, now)

    def _give_back(self, attachment: str) -> None:
        self._link.request("release", AttachmentParams(attachment=attachment))

    def _refused(self, session: Session, error: AgentbusError, now: float) -> None:
        claimed = isinstance(error, SessionAlreadyConnected)
        if claimed and session.refused_at is None:
            session.refused_at = now
        expired = session.refused_at is not None and session.refused_at + EXPIRY_SECONDS <= now
        if not error.retryable or (claimed and expired):
            session.state, session.problem = State.DETACHED, error
            return
        session.state = State.REFUSED
        session.retry_at = now + session.delay
        session.delay = min(2 * session.delay, LONGEST_DELAY)

    def _check_alive(self, heartbeat: HeartbeatResult) -> None:
        alive = set(heartbeat.attachments)
        for each in self._sessions.values():
            if each.attachment is not None and each.attachment not in alive:
                self.stale(each)

    def stale(self, session: Session) -> None:
        """The claim is over: the session registers again."""
        if session.state is State.ATTACHED:
            self._lose(session)
            self._attach(session)

    # messages

    def deliver(self, note: DeliverNote) -> Session | None:
        """What was pushed goes to its session."""
        for each in self._sessions.values():
            if each.attachment == note.attachment:
                each.inbox.deliver(note)
                self.report(each)
                return each
        return None

    def new_epoch(self, epoch: str, now: float) -> None:
        """Everything prefetched is void."""
        for each in self._sessions.values():
            if each.attachment is not None:
                each.fresh_at = now
                each.inbox.begin(epoch)
                self.report(each)

    def report(self, session: Session) -> None:
        """Tells the daemon what was handed off, where it can be told now."""
        attachment, epoch = session.attachment, session.inbox.epoch
        if attachment is None or epoch is None or not self._link.ready:
            return
        positions = session.inbox.report()
        if not positions:
            return
        number = self._link.request(
            "delivered",
            DeliveredParams(attachment=attachment, epoch=epoch, positions=positions),
        )
        self._reporting[number] = _Report(session, attachment, epoch, positions)

    def _reported(self, report: _Report, answer: Answer, now: float) -> None:
        session = report.session
        if answer.error is None:
            session.inbox.confirm(report.positions)
            return
        session.inbox.unreport(report.positions)
        same = (report.attachment, report.epoch) == (session.attachment, session.inbox.epoch)
        if same and isinstance(answer.error, StaleAttachment):
            self.stale(session)
        else:
            session.report_at = now + REPORT_AGAIN_SECONDS

    def renew(self, session: Session, now: float) -> None:
        """A recv is activity: its subscriptions live on; told at most once a minute."""
        due = session.renewed_at is None or session.renewed_at + RENEW_SECONDS <= now
        if due and session.attachment is not None and self._link.ready:
            session.renewed_at = now
            number = self._link.request("renew", AttachmentParams(attachment=session.attachment))
            self._renewing[number] = session

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
                self.report(each)
