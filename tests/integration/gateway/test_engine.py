"""Searches by the server's own query engine, and what becomes of them without a server."""

from __future__ import annotations

import asyncio

from agentbus.gateway.engine import Engine
from agentbus.gateway.events import Searched, SearchEngine
from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import CommitId, Seq, SessionId
from agentbus.model.message import Message, encode_envelope
from agentbus.search.document import document
from agentbus.search.query_engine import write
from agentbus.wire.links import RowInserted, SearchAsk, SearchFilter, SearchFound, SearchRefused
from tests.integration.conftest import QueryEngine
from tests.integration.gateway.conftest import AT, GENERAL, run_loop, until

CHANNELS = {"general": ChannelInfo(GENERAL, "general", "ordinary", Seq(9))}


def fill(server: QueryEngine, *contents: str) -> None:
    """As the projector would."""
    server.run(*write.OPTIONS, write.CREATE)
    for number, content in enumerate(contents, start=1):
        name = f"m{number}"
        envelope = encode_envelope(
            Message(name, number, "general", "Sam", "Sam", "x", "1", AT, "message", content, name)
        )
        row = RowInserted(GENERAL, Seq(number), SessionId(1), envelope, id=number)
        entry = (b"XADD", b"s:1", b"%d-0" % number, b"e", envelope, b"s", b"1")
        server.run(write.put(document(row), None), entry)


def ask(ref: int, query: str, channel: str | None = None) -> SearchEngine:
    filters = SearchFilter(channels=None if channel is None else [channel])
    asked = SearchAsk(ref, query, filters, "newest", 10, None, CommitId(0), 1 << 20)
    return SearchEngine(asked, CHANNELS, "bus")


class Searcher:
    def __init__(self) -> None:
        self.answers: dict[int, SearchFound | SearchRefused] = {}
        self.engine = Engine(asyncio.get_running_loop(), self._got)

    def _got(self, event: Searched) -> None:
        assert event.answer.ref not in self.answers, "answered twice"
        self.answers[event.answer.ref] = event.answer

    def contents(self, ref: int) -> list[bytes]:
        answer = self.answers[ref]
        assert isinstance(answer, SearchFound)
        return [hit.envelope for hit in answer.hits]

    def code(self, ref: int) -> str:
        answer = self.answers[ref]
        assert isinstance(answer, SearchRefused)
        return answer.failure.code


def test_searches_that_are_asked_together_are_all_answered(query_engine: QueryEngine) -> None:
    fill(query_engine, "roses are red", "violets are blue", "red and blue")

    async def main() -> None:
        searcher = Searcher()
        searcher.engine.use(query_engine.socket_path)
        for ref, query in enumerate(("red", "blue", "nothing", "are -red", "")):
            searcher.engine.search(ask(ref, query))
        assert searcher.answers == {}
        await until(lambda: len(searcher.answers) == 5)
        assert [len(searcher.contents(ref)) for ref in range(5)] == [2, 2, 0, 1, 3]
        assert b"red and blue" in searcher.contents(0)[0]
        searcher.engine.close()

    run_loop(main())


def test_what_is_wrong_with_a_search_is_told_without_asking_anybody() -> None:
    async def main() -> None:
        searcher = Searcher()
        searcher.engine.use("/tmp/ab-there-is-none.sock")
        searcher.engine.search(ask(1, "red", channel="nowhere"))
        assert searcher.answers == {}
        await until(lambda: 1 in searcher.answers)
        assert searcher.code(1) == "not_found"
        searcher.engine.close()

    run_loop(main())


def test_without_a_server_searches_fail_in_a_later_turn() -> None:
    async def main() -> None:
        searcher = Searcher()
        searcher.engine.search(ask(1, "red"))
        assert searcher.answers == {}
        await until(lambda: 1 in searcher.answers)
        searcher.engine.use("/tmp/ab-there-is-none.sock")
        searcher.engine.search(ask(2, "red"))
        await until(lambda: 2 in searcher.answers)
        assert [searcher.code(ref) for ref in (1, 2)] == ["unavailable", "unavailable"]

    run_loop(main())


def test_searches_under_way_fail_when_the_server_dies(query_engine: QueryEngine) -> None:
    fill(query_engine, *(f"word {number}" for number in range(500)))

    async def main() -> None:
        searcher = Searcher()
        searcher.engine.use(query_engine.socket_path)
        searcher.engine.search(ask(1, "word"))
        await until(lambda: 1 in searcher.answers)
        for ref in range(2, 40):
            searcher.engine.search(ask(ref, "word"))
        query_engine.kill()
        await until(lambda: len(searcher.answers) == 39)
        searcher.engine.close()

    run_loop(main())


def test_another_server_is_searched_from_then_on(query_engine: QueryEngine) -> None:
    fill(query_engine, "red")

    async def main() -> None:
        searcher = Searcher()
        searcher.engine.use("/tmp/ab-there-is-none.sock")
        searcher.engine.search(ask(1, "red"))
        searcher.engine.use(query_engine.socket_path)
        searcher.engine.search(ask(2, "red"))
        await until(lambda: len(searcher.answers) == 2)
        assert searcher.code(1) == "unavailable"
        assert len(searcher.contents(2)) == 1
        searcher.engine.close()

    run_loop(main())
