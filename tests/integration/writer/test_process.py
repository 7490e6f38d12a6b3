"""The writer's process: started, asked, locked out, killed, stopped."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentbus.model.ids import AttachmentId
from agentbus.model.message import Payload, fingerprint
from agentbus.runtime import exits
from agentbus.runtime.paths import Paths
from agentbus.wire.links import (
    Accepted,
    Append,
    Committed,
    Failing,
    Hindered,
    MemoryChanged,
    MemoryDelete,
    MemoryEdit,
    Outcomes,
    Ping,
    Pong,
    Ready,
    Register,
    StatusAsk,
    Stop,
    WriterStatus,
)

Launch = Callable[[], Any]


def append(ref: int, message_id: str, content: str = "hello") -> Append:
    payload = Payload(content)
    sender = AttachmentId("1.1")
    return Append(ref, sender, "general", message_id, fingerprint("general", payload), payload)


def answers(process: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        found += process.gateway.expect(Outcomes).outcomes
    assert len(found) == count
    return found


def register(process: Any) -> Any:
    process.gateway.send(Register(0, AttachmentId("1.1"), "Sam", "codex", "n1"))
    return answers(process, 1)[0]


def test_messages_go_in_and_answers_and_commits_come_out(launch: Launch, paths: Paths) -> None:
    process = launch()
    assert process.greet().incarnation == 1
    assert register(process).display_name == "Sam"
    process.gateway.send(*(append(n, f"m{n}") for n in range(1, 1001)))
    assert [answer.seq for answer in answers(process, 1000)] == list(range(1, 1001))
    told: list[int] = []
    while len(told) < 1000:
        commit = process.projector.expect(Committed)
        assert commit.commit_id == commit.previous + 1
        told += [row.seq for row in commit.rows]
    assert told == list(range(1, 1001))
    for name in (paths.database, paths.database + "-wal"):
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o600


def test_a_stop_commits_what_came_before_and_leaves_one_file(launch: Launch, paths: Paths) -> None:
    process = launch()
    process.greet()
    register(process)
    process.gateway.send(*(append(n, f"m{n}") for n in range(1, 501)))
    process.gateway.socket.shutdown(1)
    process.control.send(Stop())
    assert process.wait() == exits.OK
    names = [name.name for name in Path(paths.data_directory).iterdir() if name.is_file()]
    assert "bus.sqlite3" in names
    assert not [name for name in names if name.endswith(("-wal", "-shm"))]
    with closing(sqlite3.connect(paths.database)) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (500,)


def test_killed_with_answers_unread_a_resend_gets_the_original_facts(
    launch: Launch, paths: Paths
) -> None:
    first = launch()
    instance = first.greet().instance
    register(first)
    operations = [append(n, f"m{n}") for n in range(1, 401)]
    first.gateway.send(*operations)
    accepted = {answer.message_id: answer for answer in first.gateway.expect(Outcomes).outcomes}
    first.kill()
    second = launch()
    welcome = second.greet(incarnation=1)
    assert (welcome.incarnation, welcome.instance) == (1, instance)
    second.gateway.send(*operations)
    retried = answers(second, 400)
    assert [answer.seq for answer in retried] == list(range(1, 401))
    for answer in retried:
        if answer.message_id in accepted:
            original = accepted[answer.message_id]
            assert answer == msgspec.structs.replace(original, duplicate=True)
    with closing(sqlite3.connect(paths.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*), max(seq) FROM messages").fetchone() == (
            400,
            400,
        )
        counted = connection.execute("SELECT messages, receipts, last_id FROM meta").fetchone()
        assert counted == (400, 400, 400)


def test_killed_between_an_edit_and_its_answer_the_change_is_told_again(
    launch: Launch, paths: Paths
) -> None:
    first = launch()
    first.greet()
    register(first)
    payload = Payload("roses are red")
    sender, mark = AttachmentId("1.1"), fingerprint("memory", payload)
    first.gateway.send(Append(1, sender, "memory", "m1", mark, payload))
    (made,) = answers(first, 1)
    edits = [
        MemoryEdit(n, sender, made.memory_id, f"e{n}", b"%d" % n, f"revision {n}")
        for n in range(2, 40)
    ]
    first.gateway.send(*edits, MemoryDelete(40, sender, made.memory_id, "d", b"d"))
    first.projector.expect(Committed)
    first.kill()
    second = launch()
    second.greet(incarnation=1)
    second.gateway.send(*edits, MemoryDelete(40, sender, made.memory_id, "d", b"d"))
    changed = second.gateway.expect(MemoryChanged)
    while changed.envelope is not None:
        changed = second.gateway.expect(MemoryChanged)
    assert (changed.memory_id, changed.revision) == (made.memory_id, 39)
    with closing(sqlite3.connect(paths.database)) as connection:
        found = connection.execute(
            "SELECT count(*), max(revision), sum(tombstone), max(seq) FROM messages"
        ).fetchone()
        assert found == (39, 39, 39, 1)
        counted = connection.execute("SELECT memories, tombstones, receipts FROM meta").fetchone()
        assert counted == (0, 39, 40)


def test_another_programs_write_lock_is_waited_out_while_pings_are_answered(
    launch: Launch, paths: Paths
) -> None:
    process = launch()
    process.greet()
    register(process)
    with closing(sqlite3.connect(paths.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        process.gateway.send(append(1, "a"), append(2, "b"))
        began = time.monotonic()
        number = 0
        while time.monotonic() < began + 1.5:
            number += 1
            process.control.send(Ping(number))
            assert process.control.expect(Pong).number == number
        other.execute("COMMIT")
    assert [answer.seq for answer in answers(process, 2)] == [1, 2]


HOLD_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


def test_a_locked_database_delays_the_start_and_does_not_fail_it(
    launch: Launch, paths: Paths
) -> None:
    command = [sys.executable, "-c", HOLD_LOCK, paths.database]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        process = launch()
        began = time.monotonic()
        while time.monotonic() < began + 0.5:  # many tries
            process.control.send(Ping(1))
            assert isinstance(process.control.expect(Pong | Ready), Pong)
        holder.communicate(b"go on\n", timeout=30)
    assert process.greet().incarnation == 1
    log = Path(paths.log("writer")).read_text()
    assert log.count("action=database_locked") == 1
    assert log.count("action=database_free") == 1


def test_a_disk_that_fails_delays_the_start_and_does_not_fail_it(
    launch: Launch, paths: Paths
) -> None:
    os.mkdir(paths.database)  # which cannot be opened as a file
    process = launch()
    assert process.control.expect(Hindered).failure.code == "storage_error"
    began = time.monotonic()
    while time.monotonic() < began + 0.5:  # many tries
        process.control.send(Ping(1))
        assert isinstance(process.control.expect(Pong | Ready), Pong)
    os.rmdir(paths.database)
    assert process.greet().incarnation == 1
    log = Path(paths.log("writer")).read_text()
    assert log.count("action=database_unavailable") == 1
    assert log.count("action=database_free") == 1


def test_a_damaged_file_is_refused_with_the_reason_and_not_touched(
    launch: Launch, paths: Paths
) -> None:
    Path(paths.database).write_bytes(b"no database at all" * 1000)
    process = launch()
    failure = process.control.expect(Failing).failure
    assert failure.code == "database_damaged"
    assert paths.database in failure.message
    assert process.wait() == exits.FAILING
    assert Path(paths.database).read_bytes() == b"no database at all" * 1000


def test_a_newer_schema_is_refused_with_the_reason(launch: Launch, paths: Paths) -> None:
    process = launch()
    process.control.expect(Ready)
    process.kill()
    with closing(sqlite3.connect(paths.database)) as connection:
        connection.execute("PRAGMA user_version = 99")
    process = launch()
    assert process.control.expect(Failing).failure.code == "version_mismatch"
    assert process.wait() == exits.FAILING


def test_a_disk_that_is_full_refuses_the_batch_and_the_writer_lives(
    launch: Launch, paths: Paths
) -> None:
    resource = pytest.importorskip("resource")
    process = launch()
    process.greet()
    register(process)
    process.gateway.send(append(1, "a"))
    assert isinstance(answers(process, 1)[0], Accepted)
    # No file of the writer's may grow beyond this, as on a disk without room.
    before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    size = os.stat(paths.database + "-wal").st_size
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, before[1]))
    process.gateway.send(*(append(n, f"m{n}", "x" * 60_000) for n in range(2, 40)))
    refused = answers(process, 38)
    assert {answer.failure.code for answer in refused} == {"storage_error"}
    assert paths.database in refused[0].failure.message
    process.gateway.send(StatusAsk(100))
    status = answers(process, 1)[0]
    assert isinstance(status, WriterStatus)
    assert (status.messages, status.receipts, status.commit_id) == (1, 1, 1)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)
    process.gateway.send(append(101, "b"))
    answer = answers(process, 1)[0]
    assert (answer.seq, answer.duplicate) == (2, False)


def test_a_supervisor_that_vanishes_takes_the_writer_with_it(launch: Launch) -> None:
    process = launch()
    process.greet()
    process.control.socket.shutdown(1)
    assert process.wait() == exits.ORPHANED


def test_a_termination_signal_is_an_orderly_stop(launch: Launch, paths: Paths) -> None:
    process = launch()
    process.greet()
    register(process)
    process.gateway.send(append(1, "a"))
    answers(process, 1)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait() == exits.OK
    assert not os.path.exists(paths.database + "-wal")
