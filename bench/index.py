"""How fast messages are indexed and found, against FTS5 that is given the same texts bare."""

from __future__ import annotations

import itertools
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from agentbus.model.ids import ChannelId, Seq, SessionId
from agentbus.model.message import Message, encode_envelope
from agentbus.search.document import documents
from agentbus.search.fts5.read import IndexReader, Range
from agentbus.search.fts5.schema import Mark
from agentbus.search.fts5.write import IndexWriter
from agentbus.search.request import build
from agentbus.wire.links import RowInserted, SearchFilter
from bench.figures import Figure, at_least, figure, ratios
from bench.runs import Plan
from bench.words import texts

BATCH: Final = 256
CONTENT_BYTES: Final = 1024
LEAST_RATIO: Final = 0.5
SENT_AT: Final = "2026-11-30T16:40:27.123Z"


def index(plan: Plan) -> list[Figure]:
    """Processor time of both, turn by turn, since other programs disturb time itself; with words
    as common as those of a language."""
    contents = texts(plan.indexed, CONTENT_BYTES)
    rows = [_row(number, text) for number, text in enumerate(contents, start=1)]
    bare, ours, searches = [], [], []
    for repeat in range(plan.repeats):
        plan.say(f"index, run {repeat + 1} of {plan.repeats}")
        with tempfile.TemporaryDirectory(prefix="ab-index-", dir=plan.base) as directory:
            bare.append(_bare(os.path.join(directory, "bare"), contents))
            path = os.path.join(directory, "index")
            ours.append(_ours(path, rows))
            searches.append(_search(path, contents))
    return [
        at_least("indexed, of bare FTS5", ratios(ours, bare), "x", LEAST_RATIO),
        figure("indexed, of processor time", ours, "messages/s"),
        figure("bare FTS5, of processor time", bare, "messages/s"),
        figure("search of two words, newest 100", searches, "ms"),
    ]


def _row(number: int, text: str) -> RowInserted:
    message_id = f"m{number}"
    message = Message(
        *(message_id, number, "general", "Sam", "Sam", "bench", "s"),
        *(SENT_AT, "message", text, message_id),
    )
    envelope = encode_envelope(message)
    return RowInserted(ChannelId(1), Seq(number), SessionId(1), envelope, None, None, number)


def _bare(path: str, contents: Sequence[str]) -> float:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=normal")
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(words, content='')")
        began = time.process_time()
        for start in range(0, len(contents), BATCH):
            batch = enumerate(contents[start : start + BATCH], start=start)
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO t (rowid, words) VALUES (?, ?)", batch)
            connection.execute("COMMIT")
        return len(contents) / (time.process_time() - began)


def _ours(path: str, rows: Sequence[RowInserted]) -> float:
    with closing(IndexWriter(path)) as writer:
        writer.open()
        writer.begin(Mark("bench", "1", 0))
        began = time.process_time()
        for start in range(0, len(rows), BATCH):
            writer.add(documents(rows[start : start + BATCH])[0], start)
        return len(rows) / (time.process_time() - began)


def _search(path: str, contents: Sequence[str]) -> float:
    took = []
    with closing(IndexReader(path)) as reader:
        for text in contents[:100]:
            query = " ".join(text.split()[:2])
            began = time.perf_counter()
            request = build(query, SearchFilter(), "newest", 100, None, 1, {}, "bench")
            with reader.searching(lambda: False) as search:
                found = search.candidates(request, Range(0, len(contents)))
                _ = list(itertools.islice(found, 100))
                found = iter(())  # what was not asked for ends with its connection
            took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)
