"""Writing the mirror: one transaction a batch, which names what must be there before it.

The steps of a rebuild are none: as long as the mark says that one is under way nothing of it is
believed, so it need not be whole, and a server carries it out for two thirds of the work.

Only the projector may import this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from agentbus.mirror import keys
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.model.ids import CommitId
from agentbus.wire.links import Boundary, RowInserted, Tombstoned

_REBUILDING: Final = b"rebuilding-"


class Mark(msgspec.Struct, frozen=True):
    """The meta hash: of which bus and schema the streams are, and how far they go."""

    instance: bytes
    schema: bytes
    commit: bytes

    @property
    def commit_id(self) -> CommitId | None:
        """The last commit that is in; None in the middle of a rebuild."""
        return CommitId(int(self.commit)) if self.commit.isdigit() else None

    def at(self, commit_id: CommitId) -> Mark:
        """The same at this commit."""
        return Mark(self.instance, self.schema, b"%d" % commit_id)

    def rebuilding(self, step: int) -> Mark:
        """The same after so many steps of a rebuild."""
        return Mark(self.instance, self.schema, _REBUILDING + b"%d" % step)


RECALL: Final[Command] = (b"HMGET", keys.META, keys.INSTANCE, keys.SCHEMA, keys.COMMIT)
"""Asks for the mark; `recalled` reads the reply."""


def recalled(reply: Reply) -> Mark | None:
    """The mark; None where there is none, or something else in its place."""
    if isinstance(reply, Refused) or None in reply:
        return None
    return Mark(*reply)


class Changes(msgspec.Struct, frozen=True):
    """What one transaction does to streams and contents, beside moving the mark.

    `messages` and `created` memories are new entries in the order of each stream; `edited` memories
    have entries; `deleted` ones, and what is below the `boundaries`, have none afterwards.
    """

    messages: list[RowInserted]
    created: Sequence[RowInserted] = ()
    edited: Sequence[RowInserted] = ()
    deleted: Sequence[Tombstoned] = ()
    boundaries: Sequence[Boundary] = ()

    @property
    def entries(self) -> list[RowInserted]:
        """All that is new in the streams."""
        return [*self.messages, *self.created]

    @property
    def only_adds(self) -> bool:
        """Whether counting the entries of all streams tells if this was carried out."""
        return not (self.edited or self.deleted or self.boundaries)


def batch(
    before: Mark, after: Mark, changes: Changes, documents: Sequence[Command] = ()
) -> list[Command]:
    """Carries the changes out, keeps the server's own index in step with them by `documents`, and
    moves the mark. `refusal` reads the replies."""
    xadd, envelope, session = b"XADD", keys.ENVELOPE, keys.SESSION
    commands: list[Command] = [(b"MULTI",), RECALL] if is_transaction(after) else [RECALL]
    commands += [
        (
            xadd,
            b"s:%d" % row.channel_id,
            b"%d-0" % row.seq,
            envelope,
            row.envelope,
            session,
            b"%d" % row.session_id,
        )
        for row in changes.messages
    ]
    if changes.created or not changes.only_adds:
        commands += _change(changes)
    commands += documents
    commands.append(_move(before, after))
    if is_transaction(after):
        commands.append((b"EXEC",))
    return commands


def is_transaction(after: Mark) -> bool:
    """Whether what leads to this mark is carried out whole or not at all."""
    return after.commit_id is not None


def _change(changes: Changes) -> Iterator[Command]:
    for row in changes.created:
        yield _refer(row)
        yield _fill(row)
    for row in changes.edited:
        yield _fill(row)
    for gone in changes.deleted:
        yield (b"XDEL", keys.stream(gone.channel_id), keys.entry_id(gone.seq))
        yield (b"HDEL", keys.contents(gone.channel_id), gone.memory_id.encode())
    for boundary in changes.boundaries:
        oldest = keys.entry_id(boundary.oldest)
        yield (b"XTRIM", keys.stream(boundary.channel_id), b"MINID", b"=", oldest)


def _refer(row: RowInserted) -> Command:
    return (
        b"XADD",
        keys.stream(row.channel_id),
        keys.entry_id(row.seq),
        keys.MEMORY,
        _name(row),
        keys.SESSION,
        b"%d" % row.session_id,
    )


def _fill(row: RowInserted) -> Command:
    return (b"HSET", keys.contents(row.channel_id), _name(row), row.envelope)


def _name(row: RowInserted) -> bytes:
    assert row.memory_id is not None
    return row.memory_id.encode()


def _move(before: Mark, after: Mark) -> Command:
    if (before.instance, before.schema) == (after.instance, after.schema):
        return (b"HSET", keys.META, keys.COMMIT, after.commit)
    return _set(after)


def _set(mark: Mark) -> Command:
    return (
        b"HSET",
        keys.META,
        keys.INSTANCE,
        mark.instance,
        keys.SCHEMA,
        mark.schema,
        keys.COMMIT,
        mark.commit,
    )


def clear(after: Mark) -> list[Command]:
    """Empties the server and sets the mark."""
    return [(b"MULTI",), (b"FLUSHALL", b"SYNC"), _set(after), (b"EXEC",)]


def refusal(
    replies: Sequence[Reply], before: Mark | None, *, transaction: bool = True
) -> str | None:
    """Why a transaction, or what was none, is not what was meant, or None.

    Redis carries on after a command of an `EXEC` was refused, and another client may have changed
    the mark: after either, nothing is known of what the streams hold.
    """
    results = replies[-1] if transaction else replies
    within = results if transaction and isinstance(results, list) else ()
    for answers in (replies, within):
        if Refused in map(type, answers):
            refused = next(reply for reply in answers if isinstance(reply, Refused))
            return f"Redis refused a write: {refused.brief}"
    if not isinstance(results, list):
        return "Redis did not carry out a transaction"
    if before is not None and recalled(results[0]) != before:
        return "the contents of Redis were changed by somebody else"
    return None
