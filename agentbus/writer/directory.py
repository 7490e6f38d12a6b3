"""The directory of agents and their sessions."""

from __future__ import annotations

from typing import Final

from agentbus.model.session import Session
from agentbus.wire.links import DiscoverAsk, Discovered, KnownAgent, KnownSession
from agentbus.writer.work import Work

SESSIONS: Final = 100
"""Of each agent: those that are attached, then the last seen first."""

AGENTS: Final = 500
"""Those with sessions that are attached, then the last seen first."""

BYTES: Final = 2 * 1024 * 1024
"""About what an answer may have; sessions beyond it are left out."""

_SESSION_BYTES: Final = 256
"""Of a session's line, beside its texts."""


def discover(work: Work, operation: DiscoverAsk) -> Discovered:
    """Everybody, or one agent; nobody where there is none of that name. Raises StaleAttachment."""
    work.state.holder(operation.attachment)
    room = BYTES
    agents: list[KnownAgent] = []
    for number, name in _agents(work, operation.agent):
        sessions: list[KnownSession] = []
        for session in _sessions(work, number):
            room -= _size(session)
            if room < 0:
                break
            sessions.append(_known(work, session))
        agents.append(KnownAgent(name, sessions))
    work.size += BYTES - max(0, room)
    return Discovered(operation.ref, agents)


def _agents(work: Work, name: str | None) -> list[tuple[int, str]]:
    people = work.store.people
    if name is not None:
        number = people.agent(name)
        return [] if number is None else [(number, name)]
    present = [(session.agent_id, session.agent) for session in _latest(work)]
    return list(dict.fromkeys(present + people.agents_last_seen(AGENTS)))[:AGENTS]


def _latest(work: Work) -> list[Session]:
    """Sessions that are attached, the latest first."""
    present = [held.session for held in work.state.attached.values()]
    return sorted(present, key=lambda session: (session.attached_at, session.id), reverse=True)


def _sessions(work: Work, agent: int) -> list[Session]:
    present = [session for session in _latest(work) if session.agent_id == agent]
    return [*present, *work.store.people.detached_of(agent, SESSIONS)][:SESSIONS]


def _size(session: Session) -> int:
    texts = (session.display_name, session.native, session.child, session.parent, session.role)
    return _SESSION_BYTES + sum(len(text) for text in texts if text)


def _known(work: Work, session: Session) -> KnownSession:
    attached = session.attachment is not None
    return KnownSession(
        session.display_name,
        session.application,
        session.native,
        session.child,
        session.parent,
        session.role,
        session.repository,
        attached,
        (work.now if attached else session.last_seen) / 1000,
    )
