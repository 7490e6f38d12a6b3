"""How fast a search is answered by the bus, against the same FTS5 query asked directly."""

from __future__ import annotations

import itertools
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any, Final

from agentbus.model.ids import ChannelId, Seq, SessionId
from agentbus.search.document import documents
from agentbus.search.fts5.render import expression
from agentbus.search.request import build
from agentbus.wire.links import RowInserted, SearchFilter
from bench.accept import CONTENT_BYTES, SETTINGS
from bench.bus import Bus
from bench.figures import Chart, Figure, Point, at_most, figure, percentile, ratios
from bench.load import VARIED, Connection, Spec
from bench.recover import LARGE, fill
from bench.runs import Plan
from bench.words import texts

LIMIT: Final = 20
MOST_RATIO: Final = 3.0
BATCH: Final = 2_048
TOOK: Final = Chart("search, median", "messages stored")
SHARE: Final = Chart("search of bare FTS5", "messages stored")

CREATE: Final = """
    CREATE VIRTUAL TABLE found USING fts5(words, parts, marks, content='', tokenize='ascii')
"""
INSERT: Final = "INSERT INTO found (rowid, words, parts, marks) VALUES (?, ?, ?, ?)"
SELECT: Final = """
    SELECT envelope FROM found JOIN bus.messages ON messages.id = found.rowid
    WHERE found MATCH ? ORDER BY found.rowid DESC LIMIT ?
"""
UNINDEXED: Final = """
    SELECT id, channel_id, seq, session_id, envelope FROM bus.messages WHERE id > ? ORDER BY id
    LIMIT ?
"""


def search(plan: Plan) -> list[Figure]:
    """Two words of one message, the newest first, as many as an agent reads: from the line of the
    request to the line of its result. The bare query is one statement on one FTS5 table of the same
    terms, which reads the messages it finds; both are asked the same in turns."""
    figures: list[Figure] = []
    with (
        Bus(plan.base, {**SETTINGS, **LARGE}) as bus,
        tempfile.TemporaryDirectory(prefix="ab-bare-", dir=plan.base) as directory,
        closing(bare_table(os.path.join(directory, "bare"), bus.place.paths.database)) as bare,
    ):
        for stored in plan.searched:
            held = fill(plan, bus, stored, varied=True)
            fill_table(plan, bare)
            figures += _compared(plan, bus, bare, held)
    return figures


def _compared(plan: Plan, bus: Bus, bare: sqlite3.Connection, held: int) -> list[Figure]:
    halves: dict[str, list[float]] = {"bus": [], "bare": []}
    slow: dict[str, list[float]] = {"bus": [], "bare": []}
    asked = iter(itertools.cycle(_queries()))
    with closing(_Asker(bus, f"search{held}")) as asker:
        for repeat in range(plan.repeats):
            plan.say(f"{held} messages, run {repeat + 1} of {plan.repeats}")
            took: dict[str, list[float]] = {"bus": [], "bare": []}
            for query in itertools.islice(asked, plan.queries):
                ours = _timed(took["bus"], lambda query=query: asker.ask(query))
                theirs = _timed(took["bare"], lambda query=query: _ask_bare(bare, query))
                if ours != theirs:
                    raise RuntimeError(f"{query!r}: the bus finds {ours} messages, bare {theirs}")
            for name, samples in took.items():
                halves[name].append(statistics.median(samples))
                slow[name].append(percentile(samples, 99))
    name = f"search of {held}"
    shares = ratios(halves["bus"], halves["bare"])
    return [
        at_most(
            f"{name}, median, of bare FTS5",
            shares,
            "x",
            MOST_RATIO,
            point=Point(SHARE, "median", held),
        ),
        figure(
            f"{name}, 99th percentile, of bare FTS5",
            ratios(slow["bus"], slow["bare"]),
            "x",
            Point(SHARE, "99th percentile", held),
        ),
        *(
            figure(f"{name}, {who}, median", samples, "ms", Point(TOOK, who, held))
            for who, samples in halves.items()
        ),
        *(
            figure(f"{name}, {who}, 99th percentile", samples, "ms")
            for who, samples in slow.items()
        ),
    ]


def _queries() -> Iterable[str]:
    return [" ".join(text.split()[:2]) for text in texts(VARIED, CONTENT_BYTES)]


def _timed(took: list[float], ask: Callable[[], int]) -> int:
    began = time.perf_counter()
    found = ask()
    took.append((time.perf_counter() - began) * 1000)
    return found


class _Asker:
    """An attachment that searches."""

    def __init__(self, bus: Bus, run: str) -> None:
        spec = Spec(bus.place.paths.socket, run, 0, 0, 0, 0.0, 0.0)
        self._joined = Connection(spec, "asker", [])

    def ask(self, query: str) -> int:
        """How many were found, `LIMIT` at most."""
        results: Sequence[Any] = self._joined.peer.call(
            "search", attachment=self._joined.attachment, query=query, limit=LIMIT
        )["results"]
        return len(results)

    def close(self) -> None:
        """Hangs up."""
        self._joined.socket.close()


# ---- the bare query


def bare_table(path: str, database: str) -> sqlite3.Connection:
    """An empty one, beside the messages of a bus."""
    connection = sqlite3.connect(path, isolation_level=None, uri=True)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=normal")
    connection.execute("ATTACH ? AS bus", (f"file:{database}?mode=ro",))
    connection.execute(CREATE)
    return connection


def fill_table(plan: Plan, bare: sqlite3.Connection) -> None:
    """Everything that the bus holds and the table does not."""
    last = bare.execute("SELECT max(rowid) FROM found").fetchone()[0] or 0
    while rows := bare.execute(UNINDEXED, (last, BATCH)).fetchall():
        plan.say(f"bare FTS5, from message {last + 1}")
        last = rows[-1][0]
        found, _ = documents(
            RowInserted(ChannelId(channel), Seq(seq), SessionId(session), envelope, None, None, id_)
            for id_, channel, seq, session, envelope in rows
        )
        bare.execute("BEGIN")
        bare.executemany(INSERT, [(each.id, each.words, each.parts, each.marks) for each in found])
        bare.execute("COMMIT")


def _ask_bare(bare: sqlite3.Connection, query: str) -> int:
    request = build(query, SearchFilter(), "newest", LIMIT, None, 1, {}, "bench")
    return len(bare.execute(SELECT, (expression(request), LIMIT)).fetchall())
