"""What must be true when everything has come to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentbus.indexer.keeper import State
from agentbus.indexer.search import Searcher
from agentbus.mirror import keys
from agentbus.model.ids import CommitId
from agentbus.supervisor.services import REDIS, SERVICES
from agentbus.wire.links import SearchAsk, SearchFilter, SearchFound
from tests.support.simulation.children import Child
from tests.support.simulation.indexer import Indexer
from tests.support.simulation.pipes import End
from tests.support.simulation.records import Row, require
from tests.support.simulation.truth import Truth
from tests.support.simulation.workload import MEMORIES

if TYPE_CHECKING:
    from tests.support.simulation.machine import Machine


SOON: Final = 5
"""Seconds between cleanups that come often enough to be waited for."""

STEADY: Final = 20.0
"""Seconds for which no clock was set, beside the hour for which ages then do not count."""

SLACK: Final = 10
SAMPLE: Final = 5

LIVE: Final = """
    SELECT live_bytes,
        (SELECT ifnull(sum(length(envelope)), 0) FROM messages WHERE tombstone = 0)
    FROM meta
"""


def audit(truth: Truth, machine: Machine) -> None:
    """Everything accepted is stored once, mirrored and shown; the processes are linked."""
    database(truth)
    ages(truth, machine)
    mirror(truth, machine)
    index(truth, machine)
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
    rows = sorted(truth.rows.values(), key=lambda row: row.id)
    kept = [row for row in rows if not row.purged]
    known = [(row.message_id, row.seq, row.envelope) for row in kept]
    require(found == known, "rows have changed since they were committed")
    receipts = connection.execute("SELECT operation_id, seq FROM receipts ORDER BY id").fetchall()
    remembered = [each for each in truth.stored.receipts.values() if not each.forgotten]
    remembered.sort(key=lambda each: each.id)
    same = receipts == [(each.operation_id, each.seq) for each in remembered]
    require(same, "receipts have changed since they were committed")
    living = sum(not memory.deleted for memory in truth.memories.values())
    revisions = sum(row.memory_id is not None for row in kept)
    expected = (len(kept) - revisions, living, revisions - living, len(remembered))
    counted = connection.execute(
        "SELECT messages, memories, tombstones, receipts FROM meta"
    ).fetchone()
    require(counted == expected, "counted wrongly", counted, expected)
    sizes = connection.execute(LIVE).fetchone()
    require(sizes[0] == sizes[1], "bytes counted wrongly", sizes)
    lost = truth.accepted.keys() - truth.rows.keys()
    require(not lost, "accepted, but not stored", sorted(lost))


def ages(truth: Truth, machine: Machine) -> None:
    """Whatever is past its lifetime has gone, once there was time for it."""
    interval = machine.settings.cleanup_interval_seconds
    terms, stored = truth.stored.terms, truth.stored
    if interval > SOON or not machine.scheduler.is_steady(STEADY + terms.hour / 1000):
        return
    latest = int((machine.scheduler.instant().wall - interval - SLACK) * 1000)
    rows = truth.rows.values()
    messages = [row for row in rows if row.memory_id is None and not row.gone]
    old = [row for row in messages if row.sent_at < latest - terms.retention]
    require(not old, "kept for longer than its retention", old[:1])
    receipts = [each for each in stored.receipts.values() if not each.forgotten]
    stale = [each for each in receipts if each.accepted_at < latest - terms.receipts]
    require(not stale, "a receipt was kept for too long", stale[:1])


def index(truth: Truth, machine: Machine) -> None:
    """Some messages are found by their words, and some that are gone are not."""
    indexer = machine.application("indexer")
    assert isinstance(indexer, Indexer)
    (commit,) = truth.connection().execute("SELECT commit_id FROM meta").fetchone()
    core = indexer.core
    require(core.state is State.READY, "the index is not ready", core.state)
    require(core.applied == commit, "the index is not at the last commit", core.applied, commit)
    chance = machine.scheduler.chance("checks")
    rows = list(truth.rows.values())
    searcher = Searcher(machine.disk.index, machine.disk.database)
    try:
        for row in chance.sample(rows, min(SAMPLE, len(rows))):
            _search(searcher, truth, row)
    finally:
        searcher.close()


def _search(searcher: Searcher, truth: Truth, row: Row) -> None:
    ask = SearchAsk(1, row.word.decode(), SearchFilter(), "newest", 3, None, CommitId(0), 1 << 20)
    answer = searcher.run(1, ask, lambda: False).answer
    require(isinstance(answer, SearchFound), "a search failed", answer)
    assert isinstance(answer, SearchFound)
    found = [hit.envelope for hit in answer.hits]
    expected = [row.envelope] if truth.is_current(row) else []
    require(found == expected, "found something else", row, found)


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
    missing = truth.missing(expired=False)
    require(not missing, "not shown", missing)
    for cursor in truth.cursors.values():
        if truth.is_expired(cursor):
            continue
        stream = truth.streams.get(cursor.channel, [])
        ahead = [row for row in stream[cursor.position :] if not row.gone]
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
