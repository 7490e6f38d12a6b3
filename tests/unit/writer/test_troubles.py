"""A disk that stays full does not fill its log."""

from __future__ import annotations

from agentbus.errors import StorageFailed
from agentbus.model.ports import Instant
from agentbus.wire.events import Note
from agentbus.writer.troubles import AGAIN_SECONDS, LOCKED_SECONDS, Troubles


def unsaid(troubles: Troubles, seconds: float, text: str = "full") -> list[int]:
    """How many went unsaid before, of each line of the log."""
    effects = troubles.failed(StorageFailed(text), Instant(seconds, 0.0))
    found = []
    for note in effects:
        assert isinstance(note, Note)
        assert note.action == "commit_failed"
        found.append(note.fields["unsaid"])
    return found


def test_the_same_failure_is_said_once_a_minute() -> None:
    troubles = Troubles()
    assert unsaid(troubles, 1.0) == [0]
    assert [unsaid(troubles, 2.0) for _ in range(1000)] == [[]] * 1000
    assert unsaid(troubles, 1.0 + AGAIN_SECONDS) == [1000]


def test_another_one_is_said_at_once() -> None:
    troubles = Troubles()
    assert unsaid(troubles, 1.0) == [0]
    assert unsaid(troubles, 1.1, "read-only") == [0]


def test_what_worked_in_between_makes_it_a_new_one() -> None:
    troubles = Troubles()
    assert unsaid(troubles, 1.0) == [0]
    troubles.over()
    assert unsaid(troubles, 1.1) == [0]


def test_a_lock_lasts_too_long_from_some_time_on_until_something_worked() -> None:
    troubles = Troubles()
    times = (5.0, 6.0, 4.9 + LOCKED_SECONDS, 5.0 + LOCKED_SECONDS, 6.0 + LOCKED_SECONDS)
    assert [troubles.locked(Instant(at, 0.0)) for at in times] == [False, False, False, True, True]
    troubles.over()
    assert not troubles.locked(Instant(100.0, 0.0))
