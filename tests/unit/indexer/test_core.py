from __future__ import annotations

import pytest

from agentbus.errors import DatabaseDamaged, StorageFailed
from agentbus.indexer.core import TELL_SECONDS
from agentbus.indexer.events import Cancel, Renew, Searched
from agentbus.indexer.keeper import GATHER_SECONDS, LAG_SECONDS, State
from agentbus.indexer.searches import FRESH_SECONDS, MOST, WAIT_SECONDS
from agentbus.model.ids import CommitId
from agentbus.runtime import exits
from agentbus.search.fts5.schema import IndexDamaged, Mark
from agentbus.sqlite import Busy
from agentbus.wire.events import Closed, Exit, Note, Opened, Received
from agentbus.wire.links import (
    CONTROL,
    GATEWAY_INDEXER,
    IndexState,
    IndexUpTo,
    RedisDown,
    SearchCancel,
    SearchFound,
    SearchRefused,
    Stop,
)
from tests.unit.indexer.conftest import ask


def up_to(commit_id: int) -> IndexUpTo:
    return IndexUpTo(CommitId(commit_id))


def notes(rig, action):
    return [note.fields for note in rig.take(Note) if note.action == action]


# ---- the index


def test_an_empty_index_is_filled_and_then_ready(rig):
    rig.source.newest = 7
    rig.start()
    assert rig.index.ids == [1, 2, 3, 4, 5, 6, 7]
    assert rig.core.state is State.READY
    assert rig.states() == [(False, 0), (True, 7)]
    assert notes(rig, "index_begins") == [{"reason": "there is no index yet"}]


def test_an_index_is_carried_on_from(rig):
    rig.source.newest = 3
    rig.start()
    rig.source.newest = 6
    rig.restart()
    rig.start()
    assert rig.index.ids == [1, 2, 3, 4, 5, 6]
    assert len(notes(rig, "index_begins")) == 1


@pytest.mark.parametrize(
    ("instance", "schema", "commit_id", "reason"),
    [
        ("other", None, 3, "another bus"),
        ("bus", "0.0", 3, "another version"),
        ("bus", None, 9, "ahead of the database"),
        ("bus", None, 1, "older than what was purged"),
    ],
)
def test_an_index_in_doubt_is_made_anew(rig, instance, schema, commit_id, reason):
    rig.source.newest = 3
    rig.start()
    rig.source.purge_floor = 2
    rig.index.mark = Mark(instance, schema or rig.index.mark.schema, commit_id)
    rig.index.ids = [77]
    notes(rig, "index_begins")
    rig.restart()
    rig.start()
    assert rig.index.ids == [1, 2, 3]
    (note,) = notes(rig, "index_begins")
    assert reason in note["reason"]


def test_a_database_that_is_older_than_its_index_has_lost_something_and_it_is_told(rig):
    rig.source.newest = 7
    rig.start()
    rig.source.newest = 3
    rig.restart()
    rig.start()
    assert rig.index.ids == [1, 2, 3]
    assert notes(rig, "commits_lost") == [{"missing": 4, "commit_id": 3}]
    assert [state.missing for state in rig.take(IndexState)][-1] == 4


def test_commits_come_together_for_a_moment(rig):
    rig.start()
    reads = rig.source.reads
    for commit_id in (1, 2):
        rig.source.newest = commit_id
        rig.tell(up_to(commit_id))
    assert rig.source.reads == reads
    rig.wake()
    assert rig.index.ids == [1, 2]
    assert rig.source.reads == reads + 1


def test_commits_that_keep_coming_are_gathered_until_a_moment_without_any(rig):
    rig.start()
    reads = rig.source.reads
    for commit_id in range(1, 7):
        rig.source.newest = commit_id
        rig.tell(up_to(commit_id))
        rig.run(0.1)
    assert rig.source.reads == reads
    rig.run(GATHER_SECONDS)
    assert rig.index.ids == [1, 2, 3, 4, 5, 6]


def test_commits_that_never_cease_are_indexed_all_the_same(rig):
    rig.start()
    for commit_id in range(1, 101):
        rig.source.newest = commit_id
        rig.tell(up_to(commit_id))
        rig.run(0.05)
        assert commit_id - len(rig.index.ids) <= LAG_SECONDS / 0.05 + 2


def test_steps_let_other_events_have_their_turn(rig):
    rig.start()
    rig.source.newest = 6
    rig.tell(up_to(6))
    rig.wake()
    assert rig.index.ids == [1, 2]
    assert rig.woken_at <= rig.time
    rig.wake()
    assert rig.index.ids == [1, 2, 3, 4]


def test_what_nobody_told_of_is_found_in_time(rig):
    rig.start()
    rig.source.newest = 1
    rig.run(11)
    assert rig.index.ids == [1]


def test_a_commit_that_the_database_does_not_have_is_not_waited_for(rig):
    rig.start()
    rig.tell(up_to(5))
    rig.run(1)
    reads = rig.source.reads
    rig.run(5)
    assert rig.source.reads == reads


def test_another_bus_in_the_same_place_is_noticed(rig):
    rig.source.newest = 4
    rig.start()
    rig.source.instance, rig.source.newest = "other", 2
    rig.run(12)
    assert rig.index.mark.instance == "other"
    assert rig.index.ids == [1, 2]
    assert rig.states()[-2:] == [(False, 0), (True, 2)]


def test_a_row_that_cannot_be_read_is_passed_over(rig):
    rig.source.newest = 14
    rig.start()
    assert rig.index.ids == [*range(1, 13), 14]
    assert [note["id"] for note in notes(rig, "unreadable_row")] == [13]


# ---- trouble


def test_the_database_is_waited_for(rig):
    rig.source.error = StorageFailed("no such file")
    rig.start()
    assert rig.core.state is State.CLOSED
    told = rig.take(IndexState)
    assert [(state.ready, state.reason) for state in told] == [(False, "no such file")]
    rig.source.error, rig.source.newest = None, 1
    rig.run(1)
    assert rig.states()[-1] == (True, 1)


@pytest.mark.parametrize("error", [Busy("locked"), StorageFailed("full"), DatabaseDamaged("bad")])
def test_a_step_that_fails_is_tried_again(rig, error):
    rig.start()
    rig.source.newest = 1
    rig.index.error = error
    rig.tell(up_to(1))
    rig.run(GATHER_SECONDS + 0.001)
    assert rig.index.ids == []
    rig.run(1)
    assert rig.index.ids == [1]
    assert rig.core.state is State.READY


def test_a_failure_is_told_once_and_taken_back(rig):
    rig.start()
    rig.states()
    rig.source.newest, rig.source.error = 1, StorageFailed("full")
    rig.tell(up_to(1))
    rig.run(3)
    (told,) = rig.take(IndexState)
    assert (told.ready, told.reason) == (True, "full")
    rig.source.error = None
    rig.run(1)
    assert rig.take(IndexState)[-1].reason == ""
    assert len(notes(rig, "index_failed")) == 1


def test_a_damaged_index_is_made_anew(rig):
    rig.source.newest = 3
    rig.start()
    rig.source.newest = 4
    rig.index.error = IndexDamaged("bad page")
    rig.tell(up_to(4))
    rig.run(2)
    assert rig.index.log == ["put aside"]
    assert rig.index.ids == [1, 2, 3, 4]
    assert rig.take(Renew) == [Renew()]
    assert rig.core.state is State.READY


def test_damage_that_a_search_finds_is_mended_too(rig):
    rig.source.newest = 3
    rig.start()
    rig.ask(1)
    rig.ended(1, damaged="bad page")
    assert rig.take(SearchFound)
    rig.run(1)
    assert rig.index.log == ["put aside"]
    assert rig.index.ids == [1, 2, 3]
    assert rig.take(Renew) == [Renew()]


# ---- searches


def test_a_search_that_failed_by_a_fault_of_ours_is_logged(rig):
    rig.start()
    rig.ask(1)
    rig.ended(1, fault="TypeError")
    assert notes(rig, "search_failed") == [{"error": "TypeError"}]
    assert rig.take(SearchFound)


def test_a_search_begins_when_the_index_has_what_its_caller_sent(rig):
    rig.start()
    rig.ask(1)
    assert rig.searches() == [1]
    rig.source.newest = 3
    rig.tell(ask(3, after_commit=2), ask(2, after_commit=3))
    assert (rig.index.ids, rig.searches()) == ([1, 2], [3])
    rig.run(0.001)
    assert (rig.index.ids, rig.searches()) == ([1, 2, 3], [2])
    rig.ended(2)
    rig.ended(3)
    assert [found.ref for found in rig.take(SearchFound)] == [2, 3]


def test_a_search_finds_what_others_had_sent_before_it(rig):
    rig.start()
    rig.source.newest = 3
    rig.tell(up_to(3), ask(1))
    assert rig.searches() == []
    rig.run(0.001)
    assert rig.index.ids == [1, 2, 3]
    assert rig.searches() == [1]


def test_a_search_does_not_wait_for_long_for_what_others_have_sent(rig):
    rig.start()
    rig.source.newest, rig.source.error = 1, StorageFailed("full")
    rig.tell(up_to(1), ask(1), ask(2, after_commit=1))
    rig.run(FRESH_SECONDS - 0.01)
    assert rig.searches() == []
    rig.run(0.02)
    assert rig.searches() == [1]


def test_a_search_waits_for_an_index_that_is_not_ready_but_not_for_ever(rig):
    rig.source.error = StorageFailed("no such file")
    rig.start()
    rig.ask(1)
    assert rig.searches() == []
    rig.run(WAIT_SECONDS + 1)
    (refused,) = rig.take(SearchRefused)
    assert (refused.ref, refused.failure.code) == (1, "recovering")
    assert "no such file" in refused.failure.message
    rig.ask(2)
    rig.source.error = None
    rig.run(1)
    assert rig.searches() == [2]


def test_a_commit_that_never_comes_is_not_waited_for_for_ever(rig):
    rig.start()
    rig.ask(1, after_commit=9)
    rig.run(WAIT_SECONDS + 1)
    (refused,) = rig.take(SearchRefused)
    assert refused.failure.code == "recovering"


def test_a_cancelled_search_is_not_answered(rig):
    rig.start()
    rig.ask(1, after_commit=9)
    rig.ask(2)
    assert rig.searches() == [2]
    rig.tell(SearchCancel(1), SearchCancel(2), SearchCancel(3))
    assert rig.take(Cancel) == [Cancel(rig.numbers[2])]
    rig.ended(2)
    rig.run(WAIT_SECONDS + 1)
    assert rig.take(SearchFound) == rig.take(SearchRefused) == []


def test_too_many_searches_are_refused(rig):
    rig.start()
    for ref in range(MOST):
        rig.ask(ref, after_commit=ref % 2)
    rig.ask(1000)
    (refused,) = rig.take(SearchRefused)
    assert (refused.ref, refused.failure.code) == (1000, "unavailable")


def test_a_gateway_that_goes_takes_its_searches_along(rig):
    rig.start()
    rig.ask(1)
    rig.ask(2, after_commit=9)
    rig.searches()
    old = rig.numbers[1]
    rig.states()
    rig.handle(Closed(GATEWAY_INDEXER))
    assert rig.take(Cancel) == [Cancel(old)]
    rig.handle(Opened(GATEWAY_INDEXER))
    assert rig.states() == [(True, 0)]
    rig.ask(1)
    rig.handle(Searched(old, SearchFound(1, [], "of old")))
    assert rig.take(SearchFound) == []
    rig.ended(1)
    assert rig.take(SearchFound) == [SearchFound(1, [], None)]


# ---- the process


def test_progress_is_told_now_and_then(rig):
    rig.start()
    rig.states()
    for commit_id in range(1, 101):
        rig.source.newest = commit_id
        rig.tell(up_to(commit_id))
        rig.run(0.05)
    told = rig.states()
    assert 3 <= len(told) <= 5 / TELL_SECONDS + 1
    rig.run(2)
    assert (told + rig.states())[-1] == (True, 100)


def test_it_ends_when_it_is_told_to(rig):
    rig.start()
    rig.handle(Received(CONTROL, RedisDown("gone")))
    assert rig.take(Exit) == []
    rig.handle(Received(CONTROL, Stop()))
    assert rig.take(Exit) == [Exit(exits.OK)]


def test_an_unknown_message_of_the_gateways_is_logged(rig):
    rig.start()
    rig.tell(RedisDown("what?"))
    assert notes(rig, "unexpected") == [{"message": "RedisDown"}]
