"""An indexer beside a real database, through what can happen to both."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentbus.runtime import exits
from agentbus.runtime.paths import Paths
from agentbus.wire.links import Ready, SearchCancel, SearchFound, SearchRefused, Stop
from tests.integration.indexer.conftest import Bus

Launch = Callable[[], Any]


def ready(launch: Launch) -> Any:
    process = launch()
    process.control.expect(Ready)
    process.state(lambda state: state.ready)
    return process


def test_a_search_finds_what_was_sent_before_it(launch: Launch, bus: Bus) -> None:
    bus.send("an apple")
    process = ready(launch)
    assert process.search("apple") == ["an apple"]
    commit_id = bus.send("another apple", "a pear")
    assert process.search("apple", after_commit=commit_id) == ["another apple", "an apple"]
    process.follow(bus.send("a third apple"))
    state = process.state(lambda state: state.documents == 4)
    assert state.text_bytes > 0
    assert len(process.search("apple")) == 3


def test_the_database_may_come_after_the_indexer(launch: Launch, paths: Paths) -> None:
    process = launch()
    first = process.state(lambda state: not state.ready)
    assert first.reason
    ref = process.ask("apple")
    with Bus(paths) as bus:
        bus.send("apple")
        answer = process.answer(ref)
    assert isinstance(answer, SearchFound)


def test_a_killed_indexer_goes_on_where_it_was(launch: Launch, bus: Bus, paths: Paths) -> None:
    for number in range(20):
        commit_id = bus.send(f"apple {number}")
    process = ready(launch)
    for number in range(20, 40):
        commit_id = bus.send(f"apple {number}")
        process.follow(commit_id)
    process.kill()
    commit_id = bus.send("apple 40")
    process = ready(launch)
    found = process.search("apple", after_commit=commit_id)
    assert found == [f"apple {number}" for number in range(40, -1, -1)]
    log = Path(paths.log("indexer")).read_text()
    assert log.count("action=index_begins") == 1


def test_a_damaged_index_is_made_anew_while_it_runs(launch: Launch, bus: Bus, paths: Paths) -> None:
    bus.send(*(f"apple {number}" for number in range(200)))
    process = ready(launch)
    assert len(process.search("apple", limit=1000)) == 200
    process.control.send(Stop())
    process.wait()
    with open(paths.index, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(os.path.getsize(paths.index) - 4096))
    process = launch()
    commit_id = bus.send("apple 200")
    for _ in range(20):
        answer = process.answer(process.ask("apple", commit_id, limit=1000))
        if isinstance(answer, SearchFound):
            break
        assert answer.failure.code == "recovering"
    assert isinstance(answer, SearchFound)
    assert len(answer.hits) == 201
    assert Path(f"{paths.index}.damaged").exists()


def test_an_index_of_another_bus_is_made_anew(launch: Launch, bus: Bus, paths: Paths) -> None:
    bus.send("apple of old")
    ready(launch).kill()
    bus.store.close()
    for path in (paths.database, f"{paths.database}-wal", f"{paths.database}-shm"):
        Path(path).unlink(missing_ok=True)
    Path(paths.instance_mark).unlink()
    bus.tokens.token()
    bus.incarnation, bus._who = 0, None
    bus.start()
    bus.send("apple of new")
    process = ready(launch)
    assert process.search("apple") == ["apple of new"]


def test_a_search_of_everything_does_not_keep_the_index_behind(launch: Launch, bus: Bus) -> None:
    for _ in range(20):
        bus.send(*("common words in every message here" for _ in range(256)))
    process = ready(launch)
    refs = [
        process.ask("common words every message", order="relevance", limit=1) for _ in range(20)
    ]
    commit_id = bus.send("needle")
    refs.append(process.ask("needle", after_commit=commit_id))
    process.follow(commit_id)
    answers = [process.next_answer() for _ in refs]
    assert all(isinstance(answer, SearchFound) and answer.hits for answer in answers)
    answered = [answer.ref for answer in answers]
    assert sorted(answered) == refs
    assert answered[-1] != refs[-1], "a brief search waits for long ones that came before it"


def test_a_search_that_was_cancelled_is_not_answered(launch: Launch, bus: Bus) -> None:
    bus.send("apple")
    process = ready(launch)
    process.gateway.send(SearchCancel(process.ask("apple", after_commit=99)))
    last = process.ask("apple")
    found = process.gateway.expect(SearchFound | SearchRefused)
    assert found.ref == last


def test_an_orderly_stop_leaves_a_file_and_nothing_beside_it(
    launch: Launch, bus: Bus, paths: Paths
) -> None:
    bus.send("apple")
    process = ready(launch)
    process.search("apple")
    process.control.send(Stop())
    assert process.wait() == exits.OK
    found = {path.name for path in Path(paths.data_directory).glob("search*")}
    assert found == {"search.sqlite3"}


def test_a_stopped_indexer_does_not_lose_what_is_asked_meanwhile(launch: Launch, bus: Bus) -> None:
    process = ready(launch)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    commit_id = bus.send("apple")
    process.follow(commit_id)
    ref = process.ask("apple", commit_id)
    os.kill(process.pid, signal.SIGCONT)
    assert isinstance(process.answer(ref), SearchFound)
