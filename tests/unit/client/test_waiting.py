from __future__ import annotations

from collections.abc import Callable

import pytest

from agentbus.client.waiting import News, Session, Waiter, wait
from agentbus.config import Configuration, Settings
from agentbus.errors import (
    AgentbusError,
    NotFound,
    NotRunning,
    Recovering,
    StorageFailed,
    Unavailable,
    VersionMismatch,
)
from agentbus.wire.rpc import InboxEntry


def counts(**channels: int | tuple[int, str]) -> list[InboxEntry]:
    made = []
    for name, value in channels.items():
        count, oldest = value if isinstance(value, tuple) else (value, None)
        made.append(InboxEntry(channel=name, undelivered=count, oldest_at=oldest))
    return made


def test_what_waits_is_told_once():
    news = News()
    assert not news.tell(counts(general=0))
    assert news.tell(counts(general=1))
    assert not news.tell(counts(general=1))
    assert news.tell(counts(general=2))


def test_what_comes_after_everything_was_read_is_told_again():
    news = News()
    assert news.tell(counts(general=1))
    assert not news.tell(counts(general=0))
    assert news.tell(counts(general=1))


def test_what_comes_while_the_rest_is_read_is_told_by_its_age():
    news = News()
    assert news.tell(counts(general=(2, "10:00")))
    assert news.tell(counts(general=(1, "10:05")))
    assert not news.tell(counts(general=(1, "10:05")))


def test_channels_count_apart():
    news = News()
    assert news.tell(counts(general=3, memory=0))
    assert news.tell(counts(general=0, memory=1))


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[AgentbusError], Waiter]:
    """A waiter whose daemon cannot be reached."""

    def make(error: AgentbusError) -> Waiter:
        def client(path: str) -> None:
            raise error

        monkeypatch.setattr("agentbus.client.waiting.Client", client)
        return Waiter(Configuration(Settings(), "", exists=False), Session("a", "s"), [])

    return make


@pytest.mark.parametrize(
    "error", [NotRunning("x"), Unavailable("x"), Recovering("x"), StorageFailed("x")]
)
def test_what_passes_is_waited_out(failing, error):
    assert failing(error).look() is None


def test_what_does_not_pass_is_told(failing):
    sandboxed = Unavailable("bus.sock: not permitted")
    sandboxed.__cause__ = PermissionError()
    for error in (NotFound("x"), VersionMismatch("x"), sandboxed):
        with pytest.raises(type(error)):
            failing(error).look()


class Script:
    """Answers, one for each look."""

    def __init__(self, *answers: list[InboxEntry] | None) -> None:
        self.answers = list(answers)

    def look(self) -> list[InboxEntry] | None:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentbus.client.waiting.LOOK_SECONDS", 0.001)


def test_it_ends_with_the_first_count_and_tells_no_empty_channel():
    told = []
    script = Script(None, counts(a=0), counts(a=2, b=0))
    assert wait(script, None, told.append)
    assert told == [counts(a=2)]


def test_it_ends_when_the_time_is_over_also_where_nobody_can_tell():
    told = []
    assert not wait(Script(None), 0.01, told.append)
    assert not wait(Script(counts(a=0)), 0, told.append)
    assert told == []


def test_it_goes_on_where_that_is_wanted():
    told = []
    script = Script(counts(a=1), counts(a=1), None, counts(a=0), counts(a=4), counts(a=4))
    assert wait(script, 0.2, told.append, follow=True)
    assert told == [counts(a=1), counts(a=4)]
