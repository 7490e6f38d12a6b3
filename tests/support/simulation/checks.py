"""What must be true when everything has come to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbus.mirror import keys
from agentbus.supervisor.services import REDIS, SERVICES
from tests.support.simulation.children import Child
from tests.support.simulation.pipes import End
from tests.support.simulation.truth import Truth, require

if TYPE_CHECKING:
    from tests.support.simulation.machine import Machine


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
    known = [(row.message_id, row.seq, row.envelope) for row in truth.rows.values()]
    require(found == known, "rows have changed since they were committed")
    receipts = connection.execute("SELECT operation_id, seq FROM receipts ORDER BY id").fetchall()
    require(receipts == [row[:2] for row in found], "receipts are not those of the rows")
    counted = connection.execute("SELECT messages, receipts, last_id FROM meta").fetchone()
    require(counted == (len(found), len(found), len(found)), "counted wrongly", counted)
    lost = truth.accepted.keys() - truth.rows.keys()
    require(not lost, "accepted, but not stored", sorted(lost))


def mirror(truth: Truth, machine: Machine) -> None:
    """Redis holds what the database does."""
    model = machine.redis.model
    connection = truth.connection()
    (commit,) = connection.execute("SELECT commit_id FROM meta").fetchone()
    for name, rows in truth.streams.items():
        (number,) = connection.execute("SELECT id FROM channels WHERE name = ?", (name,)).fetchone()
        expected = [(row.seq, row.envelope) for row in rows]
        require(model.envelopes(keys.stream(number)) == expected, "a stream differs", name)
    mark = model.hashes[keys.META][keys.COMMIT]
    require(mark == b"%d" % commit, "Redis is not at the last commit", mark, commit)


def cursors(truth: Truth) -> None:
    """Everybody was shown everything, and the cursors say so."""
    require(not truth.missing(), "not shown", truth.missing())
    for cursor in truth.cursors.values():
        top = len(truth.streams.get(cursor.channel, []))
        require(cursor.position == top, "a cursor lags behind what was shown", cursor, top)


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
