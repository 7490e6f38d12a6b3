"""Who takes part, channels and cursors, messages and receipts.

Times are integers, milliseconds since 1970 in UTC. A row's envelope comes last, so that the columns
before it are read without its overflow pages.
"""

from __future__ import annotations

from typing import Final

from sqlite_utils import Database

META: Final = """
    CREATE TABLE meta (
        id            INTEGER PRIMARY KEY CHECK (id = 1),
        instance      TEXT NOT NULL,               -- token of this bus; a reset makes a new one
        created_at    INTEGER NOT NULL,
        incarnation   INTEGER NOT NULL DEFAULT 0,  -- of the gateway whose attachments count
        last_id       INTEGER NOT NULL DEFAULT 0,  -- newest messages.id and receipts.id given out
        commit_id     INTEGER NOT NULL DEFAULT 0,  -- newest one that inserted or tombstoned rows
        sent_at       INTEGER NOT NULL DEFAULT 0,  -- newest messages.sent_at: it never goes back
        purge_floor   INTEGER NOT NULL DEFAULT 0,  -- newest tombstone_commit_id ever purged
        messages      INTEGER NOT NULL DEFAULT 0,  -- ordinary rows
        memories      INTEGER NOT NULL DEFAULT 0,  -- current revisions
        tombstones    INTEGER NOT NULL DEFAULT 0,
        receipts      INTEGER NOT NULL DEFAULT 0,
        evicted       INTEGER NOT NULL DEFAULT 0,  -- ordinary rows ever deleted by retention
        logical_bytes INTEGER NOT NULL DEFAULT 0   -- see store.write.rows
    )
"""

CHANNELS: Final = """
    CREATE TABLE channels (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        name       TEXT NOT NULL UNIQUE,
        kind       TEXT NOT NULL CHECK (kind IN ('ordinary', 'memory')),
        last_seq   INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL
    )
"""

AGENTS: Final = """
    CREATE TABLE agents (
        id              INTEGER PRIMARY KEY,
        name            TEXT NOT NULL UNIQUE,
        repository_root TEXT UNIQUE,               -- whose picked name this is; NULL: was chosen
        created_at      INTEGER NOT NULL
    )
"""

SESSIONS: Final = """
    CREATE TABLE sessions (
        id           INTEGER PRIMARY KEY AUTOINCREMENT,  -- messages outlive forgotten sessions
        agent_id     INTEGER NOT NULL REFERENCES agents (id),
        application  TEXT NOT NULL,
        native       TEXT NOT NULL,
        child        TEXT,
        parent       TEXT,
        role         TEXT,
        display_name TEXT NOT NULL,                -- in use, or the last one used
        repository   TEXT,
        attachment   TEXT,                         -- NULL: nobody is attached
        attached_at  INTEGER NOT NULL,
        last_seen    INTEGER NOT NULL,
        created_at   INTEGER NOT NULL
    )
"""

SESSIONS_BY_KEY: Final = """
    CREATE UNIQUE INDEX sessions_by_key ON sessions (application, native, ifnull(child, ''))
"""

SESSIONS_BY_ATTACHMENT: Final = """
    CREATE UNIQUE INDEX sessions_by_attachment ON sessions (attachment)
    WHERE attachment IS NOT NULL
"""

SESSIONS_BY_NAME: Final = """
    CREATE UNIQUE INDEX sessions_by_name ON sessions (display_name)
    WHERE attachment IS NOT NULL
"""

SESSIONS_BY_LAST_SEEN: Final = """
    CREATE INDEX sessions_by_last_seen ON sessions (last_seen)
"""

SESSIONS_BY_AGENT: Final = """
    CREATE INDEX sessions_by_agent ON sessions (agent_id, last_seen)
"""

SUBSCRIPTIONS: Final = """
    CREATE TABLE subscriptions (
        id          INTEGER PRIMARY KEY AUTOINCREMENT,  -- an old report must not hit a new cursor
        session_id  INTEGER NOT NULL REFERENCES sessions (id),
        channel_id  INTEGER NOT NULL REFERENCES channels (id),
        position    INTEGER NOT NULL,
        include_own INTEGER NOT NULL DEFAULT 0,
        expires_at  INTEGER NOT NULL,
        UNIQUE (session_id, channel_id)
    )
"""

OWN_EVICTED: Final = """
    CREATE TABLE own_evicted (
        subscription_id INTEGER NOT NULL,
        block           INTEGER NOT NULL,          -- see store.write.gaps
        bits            BLOB NOT NULL,
        PRIMARY KEY (subscription_id, block)
    ) WITHOUT ROWID
"""

MESSAGES: Final = """
    CREATE TABLE messages (
        id                  INTEGER PRIMARY KEY,   -- order of acceptance on the whole bus
        channel_id          INTEGER NOT NULL REFERENCES channels (id),
        seq                 INTEGER NOT NULL,      -- all revisions of a memory have its creation's
        session_id          INTEGER NOT NULL,      -- likewise: who edited it is in the envelope
        commit_id           INTEGER NOT NULL,
        sent_at             INTEGER NOT NULL,
        message_id          TEXT NOT NULL UNIQUE,
        thread              TEXT,                  -- NULL: the row is its thread's root
        reply_to            TEXT,
        memory_id           TEXT,
        revision            INTEGER,
        tombstone           INTEGER NOT NULL DEFAULT 0,
        tombstoned_at       INTEGER,
        tombstone_commit_id INTEGER,
        envelope            BLOB NOT NULL
    )
"""

MESSAGES_BY_POSITION: Final = """
    CREATE UNIQUE INDEX messages_by_position
    ON messages (channel_id, seq, session_id, tombstone) WHERE tombstone = 0
"""
# With the session (and the tombstone, for SQLite to see that it needs no row), so that own messages
# are counted from the index alone. That a position is given out once is kept by
# `channels.last_seq`, which only moves on from where it is known to be.

MESSAGES_BY_COMMIT: Final = """
    CREATE INDEX messages_by_commit ON messages (commit_id)
"""

MESSAGES_BY_MEMORY: Final = """
    CREATE UNIQUE INDEX messages_by_memory ON messages (memory_id, revision)
    WHERE memory_id IS NOT NULL
"""

MESSAGES_BY_TOMBSTONE: Final = """
    CREATE INDEX messages_by_tombstone ON messages (tombstone_commit_id)
    WHERE tombstone_commit_id IS NOT NULL
"""

RECEIPTS: Final = """
    CREATE TABLE receipts (
        id           INTEGER PRIMARY KEY,          -- the row's; of a delete, a number without one
        operation_id TEXT NOT NULL UNIQUE,
        session_id   INTEGER NOT NULL,
        fingerprint  BLOB NOT NULL,
        channel_id   INTEGER NOT NULL,
        seq          INTEGER NOT NULL,
        accepted_at  INTEGER NOT NULL,             -- the row's sent_at
        memory_id    TEXT,
        revision     INTEGER,                      -- NULL: the memory was deleted
        replaced     INTEGER                       -- the revision that was current; NULL: a send
    )
"""

STATEMENTS: Final = (
    META,
    CHANNELS,
    AGENTS,
    SESSIONS,
    SESSIONS_BY_KEY,
    SESSIONS_BY_ATTACHMENT,
    SESSIONS_BY_NAME,
    SESSIONS_BY_LAST_SEEN,
    SESSIONS_BY_AGENT,
    SUBSCRIPTIONS,
    OWN_EVICTED,
    MESSAGES,
    MESSAGES_BY_POSITION,
    MESSAGES_BY_COMMIT,
    MESSAGES_BY_MEMORY,
    MESSAGES_BY_TOMBSTONE,
    RECEIPTS,
)


def apply(db: Database) -> None:
    """Makes the tables of an empty file."""
    for statement in STATEMENTS:
        db.conn.execute(statement)
    db.conn.execute("PRAGMA user_version = 1")
