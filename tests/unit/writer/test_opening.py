"""Waiting for a database that cannot be opened yet."""

from __future__ import annotations

import pytest

from agentbus.errors import StorageFailed
from agentbus.sqlite import Busy
from agentbus.writer.opening import AGAIN_SECONDS, FAILING_SECONDS, Wait

FAILED = StorageFailed("bus.db: disk I/O error")
LOCKED = Busy("bus.db is locked by another program")


def test_a_disk_that_fails_is_waited_for_and_then_given_up_with_its_error():
    wait = Wait()
    wait.goes_on(FAILED, 100.0)
    wait.goes_on(FAILED, 100.0 + FAILING_SECONDS - 0.1)
    with pytest.raises(StorageFailed) as given_up:
        wait.goes_on(FAILED, 100.0 + FAILING_SECONDS)
    assert given_up.value is FAILED


def test_a_lock_is_waited_out_however_long_it_takes():
    wait = Wait()
    for seconds in (0.0, FAILING_SECONDS, 10 * FAILING_SECONDS):
        wait.goes_on(LOCKED, seconds)


def test_waiting_is_told_at_first_then_now_and_then_and_at_its_end():
    wait = Wait()
    told = [wait.goes_on(LOCKED, now) for now in (7.0, 7.1, 7.0 + AGAIN_SECONDS)]
    assert [note and note.fields["seconds"] for note in told] == [0, None, 60]
    ended = wait.ended(70.0)
    assert ended is not None
    assert (ended.action, ended.fields) == ("database_free", {"seconds": 63.0})


def test_another_reason_is_told_at_once():
    wait = Wait()
    actions = [wait.goes_on(error, 1.0) for error in (LOCKED, FAILED, LOCKED)]
    expected = ["database_locked", "database_unavailable", "database_locked"]
    assert [note and note.action for note in actions] == expected


def test_a_database_that_opens_at_once_is_no_news():
    assert Wait().ended(1.0) is None
