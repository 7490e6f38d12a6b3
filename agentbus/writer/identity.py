"""Who a session is: agents, names, claims."""

from __future__ import annotations

from agentbus.errors import InvalidArgument, SessionAlreadyConnected
from agentbus.model.channel import READY_MADE
from agentbus.model.ids import SessionId
from agentbus.model.names import (
    base_name,
    check_name,
    check_new_name,
    free_name,
    one_line,
    pick_name,
)
from agentbus.model.session import Session, SessionKey, Subscription
from agentbus.wire.links import Done, Register, Registered, Release
from agentbus.writer import subscriptions
from agentbus.writer.state import Attached
from agentbus.writer.work import Work

_NOBODY = SessionId(0)


def register(work: Work, operation: Register) -> Registered:
    """Gives the attachment its session, new or resumed. Asked again, it answers the same.

    Raises SessionAlreadyConnected, InvalidArgument.
    """
    key = SessionKey(operation.application, operation.native, operation.child)
    attached = work.state.attached.get(operation.attachment)
    if attached is None:
        attached = _claim(work, operation, key)
    elif attached.session.key != key:
        raise InvalidArgument("the attachment holds another session already; release it first")
    session = attached.session
    return Registered(
        operation.ref,
        operation.attachment,
        session.id,
        session.display_name,
        session.agent,
        attached.resumed,
        subscriptions.infos(work, attached),
        subscriptions.markers(work, attached),
    )


def release(work: Work, operation: Release) -> Done:
    """Ends a claim; the session and its cursors stay for a resume."""
    attached = work.state.detach(operation.attachment)
    if attached is not None:
        work.store.people.detach_session(attached.session.id, work.now)
    return Done(operation.ref)


def _claim(work: Work, operation: Register, key: SessionKey) -> Attached:
    _check(operation)
    _check_new(work, operation)
    known = work.store.people.session(key)
    if known is not None and known.attachment is not None:
        raise SessionAlreadyConnected(
            f"session {key.native!r} of {key.application!r} is connected already, as "
            f"{known.display_name!r}; that connection was left alone"
        )
    agent_id, agent = _agent(work, operation, known)
    session = _session(work, operation, known, agent_id, agent)
    cursors: list[Subscription]
    if known is None:
        session.id = work.store.people.create_session(session)
        cursors = subscriptions.begin(work, session.id, _channels(operation))
    else:
        work.store.people.attach_session(session)
        cursors = subscriptions.resume(work, session.id, active=not operation.again)
    return work.state.attach(session, cursors, resumed=known is not None)


def _check(operation: Register) -> None:
    check_name(operation.application, "application")
    check_name(operation.native, "session")
    if operation.child is not None:
        check_name(operation.child, "child")
    if operation.parent is not None:
        check_name(operation.parent, "parent")
    if operation.agent is not None:
        check_name(operation.agent, "agent")
    for channel in operation.channels or ():
        check_name(channel, "channel")


def _check_new(work: Work, operation: Register) -> None:
    """Names that somebody has already are used as they are. Raises InvalidArgument."""
    agent = operation.agent
    if agent is not None and work.store.people.agent(agent) is None:
        check_new_name(agent, "agent")
    for channel in operation.channels or ():
        if channel not in work.state.channels:
            check_new_name(channel, "channel")


def _channels(operation: Register) -> list[str]:
    if operation.channels is None:
        return [name for name, _ in READY_MADE]
    return list(dict.fromkeys(operation.channels))


def _agent(work: Work, operation: Register, known: Session | None) -> tuple[int, str]:
    """A child's is its parent's; else the one asked for, the session's, or its repository's."""
    people = work.store.people
    if operation.child is not None:
        root = SessionKey(operation.application, operation.parent or operation.native)
        parent = people.session(root)
        if parent is not None:
            return parent.agent_id, parent.agent
    if operation.agent is not None:
        found = people.agent(operation.agent)
        return found or people.create_agent(operation.agent, None, work.now), operation.agent
    if known is not None:
        return known.agent_id, known.agent
    return _picked_agent(work, operation.repository_root or "")


def _picked_agent(work: Work, root: str) -> tuple[int, str]:
    """One a repository, remembered; sessions outside of any repository share one as well."""
    people = work.store.people
    remembered = people.agent_of_root(root)
    if remembered is not None:
        return remembered
    name = pick_name(root, lambda candidate: people.agent(candidate) is not None)
    return people.create_agent(name, root, work.now), name


def _session(
    work: Work, operation: Register, known: Session | None, agent_id: int, agent: str
) -> Session:
    role = one_line(operation.role or "") or (known.role if known else None)
    same = known is not None and (known.agent_id, known.role) == (agent_id, role)
    old_name = known.display_name if known is not None and same else None
    taken = work.state.names
    if old_name is not None and old_name not in taken:
        display_name = old_name
    else:
        display_name = free_name(base_name(agent, operation.child, role), taken.__contains__)
    return Session(
        id=known.id if known else _NOBODY,
        agent_id=agent_id,
        agent=agent,
        application=operation.application,
        native=operation.native,
        child=operation.child,
        parent=operation.parent,
        role=role,
        display_name=display_name,
        repository=one_line(operation.repository or "") or None,
        attachment=operation.attachment,
        # Later than its creation, and be it by the smallest step: that tells a resume from it.
        attached_at=max(work.now, known.created_at + 1) if known else work.now,
        last_seen=work.now,
        created_at=known.created_at if known else work.now,
    )
