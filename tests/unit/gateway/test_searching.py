"""Searches find their way to the index that there is, and wait for it only so long."""

from __future__ import annotations

from typing import Any

import pytest

from agentbus.gateway.events import Searched
from agentbus.gateway.searching import NUDGE_SECONDS, PATIENCE_SECONDS
from agentbus.wire.error_codes import Failure
from agentbus.wire.events import Closed, Opened, Received
from agentbus.wire.links import (
    CONTROL,
    GATEWAY_INDEXER,
    Append,
    IndexUpTo,
    Processes,
    SearchAsk,
    SearchCancel,
    SearchFilter,
    SearchFound,
    SearchHit,
    SearchRefused,
)
from tests.support.gateway_rig import MEMORY, Rig, envelope, info

HIT = SearchHit(envelope(3), "a <b>place</b>")


def search(rig: Rig, connection: int, attachment: str, query: str = "x", **params: Any) -> int:
    return rig.ask(connection, "search", attachment=attachment, query=query, **params)


def asked(rig: Rig) -> list[SearchAsk]:
    found = [each for each in rig.searches if isinstance(each, SearchAsk)]
    rig.searches = [each for each in rig.searches if not isinstance(each, SearchAsk)]
    return found


def answer(rig: Rig, message: SearchFound | SearchRefused) -> None:
    rig.event(Received(GATEWAY_INDEXER, message))


def indexed() -> Rig:
    rig = Rig()
    rig.event(Opened(GATEWAY_INDEXER))
    rig.index()
    return rig


# ---- the indexer


def test_a_search_reaches_the_indexer_with_all_it_asks_for() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    request = search(
        rig,
        connection,
        attachment,
        "words",
        channels=["general"],
        sender="Sam",
        since="2026-11-30",
        until="2026-12-01",
        thread="t",
        reply_to="r",
        kind="ordinary",
        order="relevance",
        limit=7,
        cursor="c",
        max_bytes=1000,
    )
    (ask,) = asked(rig)
    filters = SearchFilter(["general"], "Sam", "2026-11-30", "2026-12-01", "t", "r", "ordinary")
    assert ask == SearchAsk(ask.ref, "words", filters, "relevance", 7, "c", 0, 1000)
    answer(rig, SearchFound(ask.ref, [HIT], "next"))
    result = rig.result(connection, request)
    assert result["results"][0]["snippet"] == "a <b>place</b>"
    assert result["results"][0]["message"]["seq"] == 3
    assert result["next_cursor"] == "next"


def test_what_the_indexer_refuses_is_refused() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    request = search(rig, connection, attachment)
    (ask,) = asked(rig)
    answer(rig, SearchRefused(ask.ref, Failure("not_found", "no channel")))
    assert rig.result(connection, request)["code"] == "not_found"


def test_a_session_finds_what_it_has_sent() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    rig.send(connection, attachment)
    rig.accept(rig.frame(Append))
    search(rig, connection, attachment)
    assert asked(rig)[0].after_commit == rig.commit


def test_a_session_finds_what_a_writer_had_stored_without_a_word() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    rig.send(connection, attachment)
    rig.commit += 1
    rig.accept(rig.frame(Append), duplicate=True)
    search(rig, connection, attachment)
    assert asked(rig)[0].after_commit == rig.commit


def test_nobody_finds_what_a_memory_was_once_that_has_been_told() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    rig.change(1)
    search(rig, connection, attachment)
    assert asked(rig)[0].after_commit == rig.commit


def test_a_search_waits_for_an_index_that_is_not_ready() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = search(rig, connection, attachment)
    rig.event(Opened(GATEWAY_INDEXER))
    rig.index(ready=False, reason="reading the database")
    assert asked(rig) == []
    rig.index()
    (ask,) = asked(rig)
    answer(rig, SearchFound(ask.ref, [], None))
    assert rig.result(connection, request) == {"results": []}


def test_it_does_not_wait_for_ever() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.index(ready=False, reason="reading the database")
    request = search(rig, connection, attachment)
    rig.sleep(PATIENCE_SECONDS + 0.1)
    error = rig.result(connection, request)
    assert error["code"] == "recovering"
    assert "reading the database" in error["message"]


def test_an_answer_that_does_not_come_is_given_up_and_cancelled() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    first = search(rig, connection, attachment)
    rig.sleep(PATIENCE_SECONDS / 2)
    second = search(rig, connection, attachment)
    early, late = asked(rig)
    rig.sleep(PATIENCE_SECONDS / 2 + 0.1)
    assert rig.result(connection, first)["code"] == "recovering"
    assert rig.searches == [SearchCancel(early.ref)]
    assert rig.reply(connection, second) is None
    answer(rig, SearchFound(early.ref, [], None))
    answer(rig, SearchFound(late.ref, [], None))
    assert rig.result(connection, second) == {"results": []}


def test_a_search_that_the_indexer_died_over_is_asked_again() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    search(rig, connection, attachment)
    (ask,) = asked(rig)
    rig.event(Closed(GATEWAY_INDEXER))
    assert rig.core._parts.condition.state == "ready"
    rig.event(Opened(GATEWAY_INDEXER))
    rig.index()
    assert asked(rig) == [ask]


def test_without_its_connection_a_search_is_cancelled() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    search(rig, connection, attachment)
    (ask,) = asked(rig)
    rig.disconnect(connection)
    assert rig.searches == [SearchCancel(ask.ref)]


def test_at_the_end_of_the_daemon_searches_end() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    request = search(rig, connection, attachment)
    rig.stop()
    assert rig.result(connection, request)["code"] == "unavailable"


def test_without_an_indexer_for_good_a_search_is_refused_at_once() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    rig.event(Received(CONTROL, Processes([], ["indexer"])))
    error = rig.result(connection, search(rig, connection, attachment))
    assert (error["code"], error["retryable"]) == ("internal", False)
    rig.event(Received(CONTROL, Processes([])))
    search(rig, connection, attachment)
    assert len(asked(rig)) == 1


def test_while_the_bus_recovers_nothing_is_searched() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    rig.project(ready=False)
    assert rig.result(connection, search(rig, connection, attachment))["code"] == "recovering"


def test_a_connection_has_a_bounded_number_of_searches_under_way() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    for _ in range(4):
        search(rig, connection, attachment)
    assert rig.result(connection, search(rig, connection, attachment))["code"] == "rate_limited"
    answer(rig, SearchFound(asked(rig)[0].ref, [], None))
    assert rig.reply(connection, search(rig, connection, attachment)) is None


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"query": "x" * 4097}, "4096"),
        ({"query": "é" * 2049}, "4098"),
        ({"limit": 0}, "1000"),
        ({"limit": 1001}, "1000"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"channels": [""]}, "channels"),
        ({"channels": ["x"] * 257}, "256"),
        ({"sender": "a\nb"}, "sender"),
        ({"cursor": "x" * 5000}, "cursor"),
    ],
)
def test_what_no_index_could_answer_is_refused_at_once(params: dict[str, Any], said: str) -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    error = rig.result(connection, search(rig, connection, attachment, **params))
    assert error["code"] == "invalid_argument"
    assert said in error["message"]
    assert asked(rig) == []


# ---- commits


def test_the_indexer_is_told_of_commits_many_at_once() -> None:
    rig = indexed()
    for seq in range(1, 6):
        rig.show(seq, seq)
    assert rig.searches == []
    rig.sleep(NUDGE_SECONDS + 0.01)
    assert rig.searches == [IndexUpTo(5)]
    rig.sleep(1)
    assert rig.searches == [IndexUpTo(5)]


def test_the_index_is_told_of_all_commits_before_a_search() -> None:
    rig = indexed()
    connection, attachment = rig.member(1)
    for seq in range(1, 6):
        rig.show(seq, seq)
    rig.searches.clear()
    search(rig, connection, attachment)
    told, ask = rig.searches
    assert told == IndexUpTo(5)
    assert isinstance(ask, SearchAsk)


def test_without_an_indexer_nobody_is_told() -> None:
    rig = Rig()
    rig.show(1, 1)
    rig.sleep(1)
    assert rig.searches == []


# ---- the query engine


def with_engine() -> Rig:
    rig = Rig()
    rig.project(search="query_engine")
    return rig


def test_where_the_server_has_a_query_engine_that_searches() -> None:
    rig = with_engine()
    connection, attachment = rig.member(1)
    request = search(rig, connection, attachment)
    (effect,) = rig.engine
    assert (effect.ask.query, effect.instance) == ("x", "bus")
    assert sorted(effect.channels) == ["general", "memory"]
    assert rig.searches == []
    rig.event(Searched(SearchFound(effect.ask.ref, [HIT], None)))
    assert len(rig.result(connection, request)["results"]) == 1


def test_it_searches_once_what_the_session_has_sent_is_visible() -> None:
    rig = with_engine()
    connection, attachment = rig.member(1, info(1, MEMORY))
    rig.send(connection, attachment)
    rig.accept(rig.frame(Append))
    search(rig, connection, attachment)
    assert rig.engine == []
    rig.show(1, 1, commit=rig.commit)
    assert len(rig.engine) == 1


def test_as_long_as_its_index_is_being_made_searches_wait() -> None:
    rig = Rig()
    rig.project(search="")
    connection, attachment = rig.member(1)
    request = search(rig, connection, attachment)
    assert (rig.engine, rig.searches) == ([], [])
    rig.project(search="query_engine")
    assert len(rig.engine) == 1
    assert rig.reply(connection, request) is None


def test_a_search_that_nobody_waits_for_is_not_begun() -> None:
    rig = with_engine()
    connection, attachment = rig.member(1)
    rig.send(connection, attachment)
    rig.accept(rig.frame(Append))
    search(rig, connection, attachment)
    rig.disconnect(connection)
    rig.show(1, 1, commit=rig.commit)
    assert rig.engine == []
