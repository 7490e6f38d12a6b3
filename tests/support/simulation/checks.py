"""What must be true when everything has come to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentbus.mirror import keys
from agentbus.supervisor.services import REDIS, SERVICES
from tests.support.simulation.children import Child
from tests.support.simulation.pipes import End
from tests.support.simulation.truth import Truth, require
from tests.support.simulation.workload import MEMORIES

if TYPE_CHECKING:
    from tests.support.simulation.machine import Machine


LIVE: Final = """
    SELECT live_bytes,
        (SELECT ifnull(sum(length(envelope)), 0) FROM messages WHERE tombstone = 0)
    FROM meta
"""


def audit(truth: Truth, machine: Machine) -> None:
    """Everything accepted is stored once, mirrored and shown; the processes are linked."""
    database(truth)
    mirror(truth, machine)
    cursors(truth)
    links(machine)


def stopped(truth: Truth, machine: Machine) -> None:
    """After an orderly stop nothing runs, everybody left by themselves, and nothing is lost."""
    daemon = machine.daemon
    assert daemon is not None
    names = [*(service.name for service in SERVICES), REDIS]
    require(daemon.status == 0, "the supervisor failed", daemon.status)
    running = [name for name in names if machine.find(name)]
    require(not running, "left running", running)
    statuses = {name: daemon.statuses.get(name) for name in names}
    require(set(statuses.values()) == {0}, "had to be killed", statuses)
    database(truth)
    require(machine.redis.holds_its_snapshot(), "the snapshot is not what Redis held")


def database(truth: Truth) -> None:
    """Rows are as they were committed, each with its receipt, and counted."""
    connection = truth.connection()
    found = connection.execute(
        "SELECT message_id, seq, envelope FROM messages ORDER BY id"
    ).fetchall()
    rows = list(truth.rows.values())
    kept = [row for row in rows if row.memory_id is not None or not row.gone]
    known = [(row.message_id, row.seq, row.envelope) for row in kept]
    require(found == known, "rows have changed since they were committed")
    receipts = connection.execute(
        "SELECT operation_id, seq FROM receipts WHERE revision IS NOT NULL OR memory_id IS NULL "
        "ORDER BY id"
    ).fetchall()
    require(receipts == [(row.message_id, row.seq) for row in rows], "receipts of other rows")
    living = sum(not memory.deleted for memory in truth.memories.values())
    revisions = sum(len(memory.revisions) for memory in truth.memories.values())
    expected = (len(kept) - revisions, living, revisions - living)
    counted = connection.execute("SELECT messages, memories, tombstones FROM meta").fetchone()
    require(counted == expected, "counted wrongly", counted, expected)
    sizes = connection.execute(LIVE).fetchone()
    require(sizes[0] == sizes[1], "bytes counted wrongly", sizes)
    lost = truth.accepted.keys() - truth.rows.keys()
    require(not lost, "accepted, but not stored", sorted(lost))


def mirror(truth: Truth, machine: Machine) -> None:
    """Redis holds what the database does."""
    model = machine.redis.model
    connection = truth.connection()
    (commit,) = connection.execute("SELECT commit_id FROM meta").fetchone()
    for name, rows in truth.streams.items():
        (number,) = connection.execute("SELECT id FROM channels WHERE name = ?", (name,)).fetchone()
        kept = [row for row in rows if not row.gone]
        if name == MEMORIES:
            contents = [
                (row.memory_id.encode(), truth.memories[row.memory_id].revisions[-1].envelope)
                for row in kept
                if row.memory_id is not None
            ]
            held = model.hashes.get(keys.contents(number), {})
            require(held == dict(contents), "memories differ", name)
            expected = [
                (row.seq, identity) for row, (identity, _) in zip(kept, contents, strict=True)
            ]
        else:
            expected = [(row.seq, row.envelope) for row in kept]
        require(model.envelopes(keys.stream(number)) == expected, "a stream differs", name)
    mark = model.hashes[keys.META][keys.COMMIT]
    require(mark == b"%d" % commit, "Redis is not at the last commit", mark, commit)


def cursors(truth: Truth) -> None:
    """Everybody was shown everything, and the cursors say so."""
    require(not truth.missing(), "not shown", truth.missing())
    for cursor in truth.cursors.values():
        stream = truth.streams.get(cursor.channel, [])
        ahead = [row.seq for row in stream[cursor.position :] if not row.gone]
        require(not ahead, "a cursor lags behind what was shown", cursor, ahead)


def links(machine: Machine) -> None:
    """The two ends of each link belong together."""
    children = {service.name: machine.find(service.name) for service in SERVICES}
    ends: dict[str, list[End | None]] = {}
    for service in SERVICES:
        child = children[service.name]
        assert isinstance(child, Child)
        for link in service.links:
            ends.setdefault(link, []).append(child.end_of(link))
    for link, (one, other) in ends.items():
        fits = one is not None and other is not None and one.peer is other
        require(fits, "the ends of a link do not belong together", link)
    assert machine.daemon is not None
    held = machine.daemon.held_ends
    require(not held, "the supervisor keeps ends that nobody needs", held)
