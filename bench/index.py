"""How fast messages are indexed and found, against FTS5 that is given the same texts bare."""

from __future__ import annotations

import os
import random
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
from bench.figures import Figure, at_least, figure
from bench.runs import Plan

MESSAGES: Final = 8192
BATCH: Final = 256
CONTENT_BYTES: Final = 1024
WORDS: Final = 20_000
LEAST_RATIO: Final = 0.5
SENT_AT: Final = "2026-11-30T16:40:27.123Z"


def index(plan: Plan) -> list[Figure]:
    """Processor time of both, turn by turn, since other programs disturb time itself; with words
    as common as those of a language."""
    texts = _texts()
    rows = [_row(number, text) for number, text in enumerate(texts, start=1)]
    bare, ours, searches = [], [], []
    for repeat in range(plan.repeats):
        plan.say(f"index, run {repeat + 1} of {plan.repeats}")
        with tempfile.TemporaryDirectory(prefix="ab-index-", dir=plan.base) as directory:
            bare.append(_bare(os.path.join(directory, "bare"), texts))
            path = os.path.join(directory, "index")
            ours.append(_ours(path, rows))
            searches.append(_search(path, texts))
    ratios = [mine / theirs for mine, theirs in zip(ours, bare, strict=True)]
    return [
        at_least("indexed, of bare FTS5", ratios, "x", LEAST_RATIO),
        figure("indexed, of processor time", ours, "messages/s"),
        figure("bare FTS5, of processor time", bare, "messages/s"),
        figure("search of two words, newest 100", searches, "ms"),
    ]


def _texts() -> list[str]:
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(WORDS)]
    weights = [1 / place for place in range(1, WORDS + 1)]
    return [
        " ".join(chance.choices(words, weights, k=CONTENT_BYTES // 5))[:CONTENT_BYTES]
        for _ in range(MESSAGES)
    ]


def _row(number: int, text: str) -> RowInserted:
    message_id = f"m{number}"
    message = Message(
        *(message_id, number, "general", "Sam", "Sam", "bench", "s"),
        *(SENT_AT, "message", text, message_id),
    )
    envelope = encode_envelope(message)
    return RowInserted(ChannelId(1), Seq(number), SessionId(1), envelope, None, None, number)


def _bare(path: str, texts: Sequence[str]) -> float:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=normal")
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(words, content='')")
        began = time.process_time()
        for start in range(0, MESSAGES, BATCH):
            batch = enumerate(texts[start : start + BATCH], start=start)
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO t (rowid, words) VALUES (?, ?)", batch)
            connection.execute("COMMIT")
        return MESSAGES / (time.process_time() - began)


def _ours(path: str, rows: Sequence[RowInserted]) -> float:
    with closing(IndexWriter(path)) as writer:
        writer.open()
        writer.begin(Mark("bench", "1", 0))
        began = time.process_time()
        for start in range(0, MESSAGES, BATCH):
            writer.add(documents(rows[start : start + BATCH])[0], start)
        return MESSAGES / (time.process_time() - began)


def _search(path: str, texts: Sequence[str]) -> float:
    took = []
    with closing(IndexReader(path)) as reader:
        for text in texts[:100]:
            query = " ".join(text.split()[:2])
            began = time.perf_counter()
            request = build(query, SearchFilter(), "newest", 100, None, 1, {}, "bench")
            with reader.searching(lambda: False) as search:
                found = search.candidates(request, Range(0, MESSAGES))
                _ = [number for number, _ in zip(found, range(100), strict=False)]
            took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)
