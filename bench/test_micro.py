"""The smallest parts of the way of a message, each alone: `pytest bench/`, with pytest-benchmark.

They tell what a change to one of them gives. What the bus gives is measured by `python -m bench`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentbus.digest import digest
from agentbus.model.ids import ChannelId, Seq, SessionId
from agentbus.model.message import Message, Payload, encode_envelope, fingerprint
from agentbus.search.document import documents
from agentbus.search.fts5.schema import Mark
from agentbus.search.fts5.write import IndexWriter
from agentbus.search.query import parse
from agentbus.wire.framing import FrameDecoder, encode
from agentbus.wire.lines import LineDecoder
from agentbus.wire.links import RowInserted
from agentbus.wire.rpc import MAX_LINE, Request, SendParams
from bench.bare import Bare
from bench.bus import request
from bench.load import text
from bench.words import texts

Timed = Callable[..., Any]
BATCH = 256
CONTENT = text(1024)
PAYLOAD = Payload(CONTENT)
SEND = {"attachment": "a1", "channel": "general", "message_id": "m1", "content": CONTENT}
LINE = request(1, "send", SEND)


def envelope(number: int, content: str) -> bytes:
    name = f"m{number}"
    fields = (name, number, "general", "Sam", "Sam", "bench", "s", "2026-11-30T16:40:27.123Z")
    return encode_envelope(Message(*fields, "message", content, name))


def rows(count: int) -> list[RowInserted]:
    return [
        RowInserted(
            *(ChannelId(1), Seq(number), SessionId(1), envelope(number, content), None, None),
            number,
        )
        for number, content in enumerate(texts(count, 1024), start=1)
    ]


def test_lines_of_a_connection(benchmark: Timed) -> None:
    lines = (LINE + b"\n") * 32
    assert len(benchmark(lambda: LineDecoder(MAX_LINE).feed(lines))) == 32


def test_reading_a_send(benchmark: Timed) -> None:
    line, params = msgspec.json.Decoder(Request), msgspec.json.Decoder(SendParams)
    assert benchmark(lambda: params.decode(line.decode(LINE).params)).content == CONTENT


def test_the_fingerprint_of_a_message(benchmark: Timed) -> None:
    assert benchmark(fingerprint, "general", PAYLOAD) == fingerprint("general", PAYLOAD)


def test_an_envelope(benchmark: Timed) -> None:
    assert benchmark(envelope, 1, CONTENT) == envelope(1, CONTENT)


def test_a_digest_of_a_kibibyte(benchmark: Timed) -> None:
    assert len(benchmark(digest, CONTENT.encode(), 8)) == 8


def test_a_frame_from_one_process_to_another(benchmark: Timed) -> None:
    row = rows(1)[0]

    def there_and_back() -> list[RowInserted]:
        return FrameDecoder(RowInserted).feed(encode(row))

    assert benchmark(there_and_back) == [row]


def test_documents_of_messages(benchmark: Timed) -> None:
    made = rows(BATCH)
    assert len(benchmark(documents, made)[0]) == BATCH


def test_a_query_as_it_is_typed(benchmark: Timed) -> None:
    assert benchmark(parse, 'retry "connection reset" -timeout pol-358 back*').wanted


@pytest.fixture
def index(tmp_path: Path) -> Iterator[IndexWriter]:
    writer = IndexWriter(str(tmp_path / "index"))
    writer.open()
    writer.begin(Mark("bench", "1", 0))
    yield writer
    writer.close()


def test_a_batch_of_documents_indexed(benchmark: Any, index: IndexWriter) -> None:
    found, _ = documents(rows(BATCH))
    commits = iter(range(1, 10_000))

    def moved() -> tuple[tuple[Any, int], dict[str, Any]]:
        commit = next(commits)
        later = [msgspec.structs.replace(each, id=each.id + commit * BATCH) for each in found]
        return (later, commit), {}

    benchmark.pedantic(index.add, setup=moved, rounds=50)
    assert index.documents == 50 * BATCH


@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize("synchronous", ["full", "normal"])
def test_a_bare_commit(benchmark: Any, tmp_path: Path, synchronous: Any, batch: int) -> None:
    with Bare(str(tmp_path), 1024, 8, synchronous) as bare:
        took = benchmark.pedantic(lambda: bare.run(batch, 0.0001), rounds=100, warmup_rounds=5)
    assert took
