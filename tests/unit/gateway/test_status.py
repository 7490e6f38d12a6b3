"""`status`: every key of the contract, from whoever answers in time."""

from __future__ import annotations

from typing import Any

import pytest

from agentbus import __version__
from agentbus.gateway.events import Measured, Usage
from agentbus.gateway.status import PATIENCE_SECONDS
from agentbus.model.ids import AttachmentId, CommitId
from agentbus.runtime.paths import log_file
from agentbus.wire.events import Closed, Received
from agentbus.wire.links import (
    CONTROL,
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    Append,
    CapacityWarning,
    Processes,
    ProcessInfo,
    RedisStatus,
    RedisStatusAsk,
    SessionRow,
    StatusAsk,
    WriterStatus,
)
from tests.support.gateway_rig import AT, Rig, entries, info, top

CONTRACT: dict[str, Any] = {
    "version": None,
    "state": None,
    "instance": None,
    "uptime_s": None,
    "config_path": None,
    "processes": ["name", "pid", "uptime_s", "restarts", "cpu_percent", "rss_bytes"],
    "reasons": None,
    "redis": [
        "healthy", "flavour", "version", "pid", "dataset_bytes", "search", "commit_id",
        "lag_commits",
    ],
    "index": None,
    "sqlite": ["path", "logical_bytes", "file_bytes", "wal_bytes", "commit_id", "synchronous"],
    "budgets": ["redis", "sqlite"],
    "totals": [
        "messages", "memories", "tombstones", "receipts", "accepted", "delivered", "evicted",
        "rejected",
    ],
    "rates": ["accepted_per_s", "delivered_per_s", "accepted_recent", "delivered_recent"],
    "latency_ms": ["accept", "visible"],
    "sessions": [
        "display_name", "agent", "application", "session", "child", "repository", "attached",
        "since", "subscriptions", "window",
    ],
    "channels": ["name", "kind", "messages", "oldest_seq", "newest_seq", "subscribers"],
    "warnings": None,
}  # fmt: skip


def writer_status(ref: int, *sessions: SessionRow, commit: int = 9) -> WriterStatus:
    return WriterStatus(
        ref, "/data/bus.sqlite3", 1000, 4096, 8192, CommitId(commit), "full", 5, 1, 2, 6, 3,
        list(sessions), 3000,
    )  # fmt: skip


def row(session: int, attachment: str | None, **rest: Any) -> SessionRow:
    held = None if attachment is None else AttachmentId(attachment)
    return SessionRow(
        f"Sam{session}",
        "Sam",
        "x",
        str(session),
        None,
        "tmi",
        held,
        1_764_000_000.0,
        rest.get("subscriptions", [info(session)]),
    )


def redis_status(ref: int, commit: int = 7) -> RedisStatus:
    return RedisStatus(ref, True, "valkey", "9.1", 44, 2048, "fts5", CommitId(commit))


def answer(rig: Rig, *sessions: SessionRow) -> None:
    """Everybody tells."""
    rig.outcomes(writer_status(rig.frame(StatusAsk).ref, *sessions))
    asked = rig.asked.pop()
    assert isinstance(asked, RedisStatusAsk)
    rig.event(Received(PROJECTOR_GATEWAY, redis_status(asked.ref)))
    measure = rig.measures.pop()
    usages = {pid: Usage(1.5, 1000 + pid) for pid in measure.pids}
    rig.event(Measured(measure.ref, usages))


def status(rig: Rig, *sessions: SessionRow) -> dict[str, Any]:
    connection = rig.connect(greet=False)
    request = rig.ask(connection, "status")
    answer(rig, *sessions)
    found: dict[str, Any] = rig.result(connection, request)["status"]
    return found


def with_processes(rig: Rig, restarts: int = 0) -> None:
    processes = [
        ProcessInfo("supervisor", 1, rig.wall - 50, 0),
        ProcessInfo("writer", 2, rig.wall - 40, restarts),
        ProcessInfo("redis", 44, rig.wall - 45, 0),
    ]
    rig.event(Received(CONTROL, Processes(processes)))


def assert_contract(document: dict[str, Any]) -> None:
    assert list(document) == list(CONTRACT)
    for key, members in CONTRACT.items():
        value = document[key]
        for part in value if isinstance(value, list) else [value]:
            if members is not None:
                assert list(part) == members


def test_every_key_of_the_contract_is_there() -> None:
    rig = Rig()
    with_processes(rig)
    rig.member(1)
    document = status(rig, row(1, "1.1"))
    assert_contract(document)
    assert (document["version"], document["state"]) == (__version__, "ready")
    assert (document["instance"], document["uptime_s"]) == ("bus", 50.0)
    assert document["config_path"] == "/etc/agentbus.json"
    assert document["reasons"] == document["warnings"] == []
    assert document["processes"][1] == {
        "name": "writer",
        "pid": 2,
        "uptime_s": 40.0,
        "restarts": 0,
        "cpu_percent": 1.5,
        "rss_bytes": 1002,
    }
    assert document["redis"]["lag_commits"] == 2
    assert document["budgets"]["redis"] == {"used": 3000, "limit": 512 * 2**20, "percent": 0.0}
    assert document["index"] is None


def test_without_writer_and_projector_every_key_is_there_too() -> None:
    rig = Rig(start=False)
    connection = rig.connect(greet=False)
    request = rig.ask(connection, "status")
    rig.event(Measured(rig.measures.pop().ref, {}))
    document = rig.result(connection, request)["status"]
    assert_contract(document)
    assert document["state"] == "starting"
    assert document["sqlite"]["path"] is None
    assert document["redis"] == dict.fromkeys(CONTRACT["redis"]) | {"healthy": False}
    assert len(document["reasons"]) == 2


def test_those_who_do_not_answer_are_waited_for_only_so_long() -> None:
    rig = Rig()
    connection = rig.connect()
    request = rig.ask(connection, "status")
    rig.sleep(PATIENCE_SECONDS - 0.1)
    assert rig.reply(connection, request) is None
    rig.sleep(0.2)
    assert rig.result(connection, request)["status"]["sqlite"]["path"] is None
    rig.outcomes(writer_status(rig.frame(StatusAsk).ref))
    assert rig.inbox[connection] == []


@pytest.mark.parametrize("link", [GATEWAY_WRITER, PROJECTOR_GATEWAY])
def test_those_who_died_before_they_answered_are_not_waited_for(link: str) -> None:
    rig = Rig()
    connection = rig.connect()
    request = rig.ask(connection, "status")
    rig.event(Measured(rig.measures.pop().ref, {}))
    rig.event(Closed(link))
    assert rig.reply(connection, request) is None
    if link == GATEWAY_WRITER:
        rig.event(Received(PROJECTOR_GATEWAY, redis_status(rig.asked.pop().ref)))
    else:
        rig.outcomes(writer_status(rig.frame(StatusAsk).ref))
    assert rig.result(connection, request)["status"]["state"] == "recovering"


def test_a_writer_that_refuses_is_done_without() -> None:
    rig = Rig()
    connection = rig.connect()
    request = rig.ask(connection, "status")
    rig.refuse(rig.frame(StatusAsk).ref, "storage_error")
    rig.event(Received(PROJECTOR_GATEWAY, redis_status(rig.asked.pop().ref)))
    rig.event(Measured(rig.measures.pop().ref, {}))
    document = rig.result(connection, request)["status"]
    assert (document["sqlite"]["path"], document["redis"]["lag_commits"]) == (None, None)


def test_many_who_ask_at_once_cost_one_question() -> None:
    rig = Rig()
    connections = [rig.connect() for _ in range(5)]
    requests = [(connection, rig.ask(connection, "status")) for connection in connections]
    assert len(rig.framed(StatusAsk)) == 1
    rig.sleep(2)
    documents = [rig.result(*each) for each in requests]
    assert all(document == documents[0] for document in documents)


def test_the_ready_bus_has_no_reasons_and_the_others_do() -> None:
    rig = Rig()
    rig.project(ready=False)
    document = status(rig)
    assert document["state"] == "recovering"
    assert "rebuilding" in document["reasons"][0]
    rig.event(Closed(PROJECTOR_GATEWAY))
    connection = rig.connect()
    request = rig.ask(connection, "status")
    rig.sleep(2)
    reasons = rig.result(connection, request)["status"]["reasons"]
    assert "projector is being restarted" in reasons[0]


def test_a_failed_commit_is_told_for_a_minute() -> None:
    rig = Rig()
    rig.send(*rig.member(1))
    rig.refuse(rig.frame(Append).ref, "storage_error", "the disk is full")
    assert "the disk is full" in status(rig)["reasons"][0]
    rig.now += 61
    assert status(rig)["reasons"] == []


def test_restarts_and_full_budgets_are_warned_of() -> None:
    rig = Rig(sqlite_budget_mib=64)
    with_processes(rig, restarts=2)
    connection = rig.connect()
    request = rig.ask(connection, "status")
    full = WriterStatus(
        rig.frame(StatusAsk).ref, "p", 60 * 2**20, 1, 1, CommitId(1), "full", 0, 0, 0, 0, 0, []
    )
    rig.outcomes(full)
    rig.index(missing=5)
    rig.sleep(2)
    warnings = rig.result(connection, request)["status"]["warnings"]
    assert any("sqlite_budget_mib" in warning and "93.8 %" in warning for warning in warnings)
    assert any("lost at least its last 5 commits" in warning for warning in warnings)
    log = log_file(rig.settings, "supervisor")  # only the supervisor knows how a process died
    assert f"writer was restarted 2 times; {log} says why" in warnings


def test_who_was_given_up_is_named_until_it_runs_again() -> None:
    rig = Rig()
    rig.event(Received(CONTROL, Processes([], ["indexer"])))
    (reason,) = status(rig)["reasons"]
    assert reason.startswith("the indexer died too often and is not started again")
    assert log_file(rig.settings, "supervisor") in reason
    rig.event(Received(CONTROL, Processes([])))
    assert status(rig)["reasons"] == []


def test_an_index_shows_how_far_it_is() -> None:
    rig = Rig()
    rig.show(1, 1)
    rig.index(commit=1)
    rig.commit = 9
    document = status(rig)
    assert document["index"] == {"commit_id": 1, "lag_commits": 8, "documents": 7}


def test_a_warning_of_the_writer_is_shown() -> None:
    rig = Rig()
    rig.event(Received(GATEWAY_WRITER, CapacityWarning("full of memories")))
    assert "full of memories" in status(rig)["warnings"]


def test_sessions_show_where_they_stand() -> None:
    rig = Rig()
    rig.project(top(1, 4))
    attached, _ = rig.member(1, info(1, position=4))
    rig.show(5, 6)
    rig.delivered(attached)
    connection = rig.connect()
    request = rig.ask(connection, "status")
    away = row(2, None, subscriptions=[info(9, position=1, undelivered=5)])
    answer(rig, row(1, "1.1", subscriptions=[info(1, position=4)]), away)
    assert [(asked.edge, asked.count) for asked in rig.reads] == [(4, 1), (1, 1)]
    rig.read(entries(5, 5))
    rig.read(entries(2, 2))
    here, gone = rig.result(connection, request)["status"]["sessions"]
    assert (here["attached"], here["session"], here["since"]) == (
        True,
        "1",
        "2025-11-24T16:00:00.000Z",
    )
    assert here["window"] == {"messages": 2, "bytes": 2 * len(entries(5, 5)[0].envelope)}
    assert here["subscriptions"] == [
        {
            "channel": "general",
            "position": 4,
            "lag": 2,
            "oldest_undelivered_at": AT,
            "expires_at": "2027-01-15T08:00:00.000Z",
        }
    ]
    assert (gone["attached"], gone["window"]) == (False, {"messages": 0, "bytes": 0})
    (cursor,) = gone["subscriptions"]
    assert (cursor["position"], cursor["lag"], cursor["oldest_undelivered_at"]) == (1, 5, AT)


def test_without_the_oldest_messages_it_is_told_all_the_same() -> None:
    rig = Rig()
    rig.project(top(1, 4))
    connection = rig.connect()
    request = rig.ask(connection, "status")
    answer(rig, row(1, None, subscriptions=[info(1)]))
    rig.fail_read()
    (session,) = rig.result(connection, request)["status"]["sessions"]
    assert session["subscriptions"][0]["oldest_undelivered_at"] is None


def test_counts_rates_and_latencies_are_of_this_gateway() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    subscriber, other = rig.member(2)
    rig.now += 0.0
    rig.send(connection, attachment)
    rig.now += 0.010
    rig.accept(rig.frame(Append))
    rig.now += 0.010
    rig.show(1, 1, sender=1, commit=1)
    rig.ask(subscriber, "delivered", attachment=other, epoch="1.0", positions=[(2, 1)])
    rig.send(connection, "1.99")
    rig.now += 1.0
    document = status(rig)
    assert document["totals"] == {
        "messages": 5,
        "memories": 1,
        "tombstones": 2,
        "receipts": 6,
        "evicted": 3,
        "accepted": 1,
        "delivered": 1,
        "rejected": 1,
    }
    lately = [*[0] * 59, 1]
    assert document["rates"] == {
        "accepted_per_s": 0.2,
        "delivered_per_s": 0.2,
        "accepted_recent": lately,
        "delivered_recent": lately,
    }
    assert document["latency_ms"] == {
        "accept": {"p50": 10.0, "p99": 10.0, "mean_recent": [*[None] * 59, 10.0]},
        "visible": {"p50": 20.0, "p99": 20.0, "mean_recent": [*[None] * 59, 20.0]},
    }


def test_channels_count_messages_and_subscribers() -> None:
    rig = Rig()
    rig.project(top(1, 9, oldest=4))
    document = status(rig, row(1, None, subscriptions=[info(1, position=9)]))
    assert document["channels"] == [
        {
            "name": "general",
            "kind": "ordinary",
            "messages": 6,
            "oldest_seq": 4,
            "newest_seq": 9,
            "subscribers": 1,
        },
        {
            "name": "memory",
            "kind": "memory",
            "messages": 0,
            "oldest_seq": 0,
            "newest_seq": 0,
            "subscribers": 0,
        },
    ]


def test_a_connection_that_asks_and_leaves_harms_nobody() -> None:
    rig = Rig()
    connection = rig.connect()
    rig.ask(connection, "status")
    rig.disconnect(connection)
    rig.event(Closed(GATEWAY_WRITER))
    rig.sleep(2)
    assert rig.inbox[connection] == []
