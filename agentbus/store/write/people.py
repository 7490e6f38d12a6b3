"""Agents, and their sessions."""

from __future__ import annotations

from typing import Final

from agentbus.model.ids import SessionId
from agentbus.model.session import Session, SessionKey
from agentbus.sqlite import Connection
from agentbus.store.write.row_id import row_id

SELECT_AGENT: Final = "SELECT id FROM agents WHERE name = ?"
"""An agent by its name."""

SELECT_AGENT_OF_ROOT: Final = "SELECT id, name FROM agents WHERE repository_root = ?"
"""The agent whose name was picked for a repository."""

INSERT_AGENT: Final = "INSERT INTO agents (name, repository_root, created_at) VALUES (?, ?, ?)"
"""Remembers a name, and for which repository it was picked (NULL: it was chosen)."""

_SESSION: Final = """
    SELECT s.id, s.agent_id, a.name, s.application, s.native, s.child, s.parent, s.role,
           s.display_name, s.repository, s.attachment, s.attached_at, s.last_seen, s.created_at
    FROM sessions s JOIN agents a ON a.id = s.agent_id
"""

SELECT_SESSION: Final = f"""
    {_SESSION} WHERE application = ? AND native = ? AND ifnull(child, '') = ifnull(?, '')
"""
"""A session by what makes it one."""

SELECT_ATTACHED: Final = f"{_SESSION} WHERE s.attachment IS NOT NULL ORDER BY s.id"
"""The sessions that somebody holds."""

SELECT_DETACHED: Final = f"""
    {_SESSION} WHERE s.attachment IS NULL ORDER BY s.last_seen DESC, s.id DESC LIMIT ?
"""
"""The sessions that nobody holds, the last seen first."""

SELECT_DETACHED_OF: Final = f"""
    {_SESSION} WHERE s.agent_id = ? AND s.attachment IS NULL ORDER BY s.last_seen DESC LIMIT ?
"""
"""Sessions of one agent that nobody holds, the last seen first."""

SELECT_AGENTS: Final = """
    SELECT id, name FROM agents a ORDER BY
        (SELECT max(last_seen) FROM sessions s WHERE s.agent_id = a.id) DESC, id DESC
    LIMIT ?
"""
"""The agents whose sessions were seen last; those without any come last."""

SELECT_IDLE: Final = """
    SELECT id FROM sessions s WHERE last_seen <= ? AND attachment IS NULL
        AND NOT EXISTS (SELECT 1 FROM subscriptions WHERE session_id = s.id)
    LIMIT ?
"""
"""Sessions that nobody has held for long, with no cursor left."""

DELETE_SESSION: Final = "DELETE FROM sessions WHERE id = ?"
"""Forgets a session; its messages keep its number, which is not given out again."""

INSERT_SESSION: Final = """
    INSERT INTO sessions (agent_id, application, native, child, parent, role, display_name,
                          repository, attachment, attached_at, last_seen, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
"""A session seen for the first time."""

ATTACH_SESSION: Final = """
    UPDATE sessions SET agent_id = ?, parent = ?, role = ?, display_name = ?, repository = ?,
                        attachment = ?, attached_at = ?, last_seen = ?
    WHERE id = ?
"""
"""A known session is claimed again, perhaps under another name or from another place."""

DETACH_SESSION: Final = "UPDATE sessions SET attachment = NULL, last_seen = ? WHERE id = ?"
"""Ends a claim; the display name is free."""

DETACH_ALL: Final = """
    UPDATE sessions SET attachment = NULL, last_seen = ? WHERE attachment IS NOT NULL
"""
"""Ends all claims: the gateway that gave them out is gone."""


class People:
    """Who takes part."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute

    def agent(self, name: str) -> int | None:
        """An agent's id."""
        row = self._execute(SELECT_AGENT, (name,)).fetchone()
        return row[0] if row else None

    def agent_of_root(self, root: str) -> tuple[int, str] | None:
        """Id and name of the agent that a name was picked for."""
        row = self._execute(SELECT_AGENT_OF_ROOT, (root,)).fetchone()
        return (row[0], row[1]) if row else None

    def create_agent(self, name: str, root: str | None, now: int) -> int:
        """A new agent; name and root must be free."""
        return row_id(self._execute(INSERT_AGENT, (name, root, now)))

    def session(self, key: SessionKey) -> Session | None:
        """A session, attached or not."""
        found = self._execute(SELECT_SESSION, (key.application, key.native, key.child)).fetchone()
        return Session(*found) if found else None

    def attached(self) -> list[Session]:
        """The sessions that somebody holds."""
        return [Session(*row) for row in self._execute(SELECT_ATTACHED)]

    def detached(self, limit: int) -> list[Session]:
        """The sessions that nobody holds, the last seen first."""
        return [Session(*row) for row in self._execute(SELECT_DETACHED, (limit,))]

    def detached_of(self, agent: int, limit: int) -> list[Session]:
        """An agent's sessions that nobody holds, the last seen first."""
        return [Session(*row) for row in self._execute(SELECT_DETACHED_OF, (agent, limit))]

    def agents_last_seen(self, limit: int) -> list[tuple[int, str]]:
        """Ids and names of agents, those whose sessions were seen last first."""
        return self._execute(SELECT_AGENTS, (limit,)).fetchall()

    def forget_idle(self, last_seen: int, limit: int) -> int:
        """Deletes so many sessions not seen since then that have no cursor; how many it were."""
        idle = self._execute(SELECT_IDLE, (last_seen, limit)).fetchall()
        for row in idle:
            self._execute(DELETE_SESSION, row)
        return len(idle)

    def create_session(self, session: Session) -> SessionId:
        """A new session, attached; the id in it is not looked at."""
        row = (
            session.agent_id,
            session.application,
            session.native,
            session.child,
            session.parent,
            session.role,
            session.display_name,
            session.repository,
            session.attachment,
            session.attached_at,
            session.last_seen,
            session.created_at,
        )
        return SessionId(row_id(self._execute(INSERT_SESSION, row)))

    def attach_session(self, session: Session) -> None:
        """Stores what a new claim has changed."""
        row = (
            session.agent_id,
            session.parent,
            session.role,
            session.display_name,
            session.repository,
            session.attachment,
            session.attached_at,
            session.last_seen,
            session.id,
        )
        self._execute(ATTACH_SESSION, row)

    def detach_session(self, session: SessionId, now: int) -> None:
        """Ends the claim."""
        self._execute(DETACH_SESSION, (now, session))

    def detach_all(self, now: int) -> None:
        """Ends every claim."""
        self._execute(DETACH_ALL, (now,))
