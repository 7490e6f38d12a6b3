"""What the daemon says, beside what concerns the connection itself: answers and notifications."""

from __future__ import annotations

from agentbus.adapter.answers import Answers, Handoff
from agentbus.adapter.calls import Calls
from agentbus.adapter.link import Link
from agentbus.adapter.sessions import Sessions
from agentbus.adapter.updates import Updates
from agentbus.client.connection import Answer, Incoming
from agentbus.wire.rpc import (
    DeliverNote,
    EpochNote,
    InboxNote,
    NoticeNote,
    Params,
    RegisterResult,
    ReviseNote,
    RevokeNote,
    StoppingNote,
)


class Hearing:
    """Passes on what is said, and takes back what it has made obsolete and is not written yet."""

    def __init__(
        self, link: Link, sessions: Sessions, calls: Calls, answers: Answers, updates: Updates
    ) -> None:
        self._link = link
        self._sessions = sessions
        self._calls = calls
        self._answers = answers
        self._updates = updates

    def greeted(self, now: float) -> None:
        """The daemon has accepted us; it may serve another bus than the one before it."""
        if self._sessions.link_ready(now):
            self._renewed()

    def hear(self, said: Incoming, now: float) -> None:
        """One thing."""
        if isinstance(said, Answer):
            self._answered(said, now)
        else:
            self._noted(said.params, now)

    def _answered(self, answer: Answer, now: float) -> None:
        if self._sessions.answered(answer, now):
            self._renewed()
        if isinstance(answer.result, RegisterResult):
            self._answers.recall(_holds_memories)
            self._updates.changed()
        self._calls.answered(answer, now)

    def _noted(self, params: Params, now: float) -> None:
        match params:
            case DeliverNote():
                self._sessions.deliver(params)
            case ReviseNote() | RevokeNote():
                self._revised(params)
            case NoticeNote():
                self._told(params)
            case InboxNote():
                self._counted(params)
            case EpochNote():
                self._sessions.new_epoch(params.epoch, now)
                self._answers.recall(_holds_memories)
            case StoppingNote():
                self._link.stopping(params)
            case _:
                pass

    def _renewed(self) -> None:
        """Another bus: nothing that is not written yet is said or asked of the old one."""
        self._calls.reset()
        self._answers.recall(_always)

    def _revised(self, note: ReviseNote | RevokeNote) -> None:
        entries = self._sessions.revise(note)
        if entries:
            self._answers.recall(lambda handoff: handoff.taken.batch.holds(entries))

    def _told(self, note: NoticeNote) -> None:
        session = self._sessions.holder(note.attachment)
        if session is not None:
            session.notices.add(note)
            self._answers.recall(
                lambda handoff: (
                    handoff.session is session and handoff.taken.told.holds(note.memory_id)
                )
            )

    def _counted(self, note: InboxNote) -> None:
        """Counts are shown of the root's session alone."""
        root = self._sessions.root
        if root is not None and root.attachment == note.attachment:
            self._updates.changed()


def _holds_memories(handoff: Handoff) -> bool:
    """A change of them in a new epoch might not be told to whoever took them in the old one."""
    return handoff.taken.batch.holds_memories


def _always(_: Handoff) -> bool:
    return True
