"""A short soak finds nothing, and would find each kind of difference."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import pytest

from bench.soak import audit
from bench.soak.__main__ import SETTINGS, Soak
from bench.soak.members import MEMORIES, ORDINARY
from tests.support.daemon import Daemon

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def soak() -> Iterator[Soak]:
    options = argparse.Namespace(sessions=3, minutes=0.2, every=4.0, seed=5)
    with Daemon(**SETTINGS) as bus:
        bus.start()
        soak = Soak(bus, options)
        soak.run()
        yield soak


def test_after_some_kills_nothing_differs(soak: Soak) -> None:
    assert sum(soak.disturber.kills.values()) >= 1
    assert list(soak.differences()) == []
    assert len(soak.books.accepted) > 100


def lost_row(soak: Soak, stored: audit.Stored) -> Iterator[str]:
    rows = stored.rows[ORDINARY[0]]
    stored.rows[ORDINARY[0]] = rows[:3] + rows[4:]
    return audit.database(stored, soak.books)


def other_content(soak: Soak, stored: audit.Stored) -> Iterator[str]:
    soak.books.content = {key: text + "!" for key, text in soak.books.content.items()}
    return audit.database(stored, soak.books)


def unknown_memory(soak: Soak, stored: audit.Stored) -> Iterator[str]:
    del soak.books.revisions[next(key for key in soak.books.revisions if key not in _gone(soak))]
    return audit.database(stored, soak.books)


def not_shown(soak: Soak, stored: audit.Stored) -> Iterator[str]:
    session = soak.sessions[1]
    session.shown = [each for each in session.shown if each.message is None or _seq(each) != 7]
    return audit.session(session, soak.books, stored)


def shown_twice(soak: Soak, stored: audit.Stored) -> Iterator[str]:
    session = soak.sessions[1]
    session.shown = [*session.shown, session.shown[-1]]
    return audit.session(session, soak.books, stored)


def memory_not_shown(soak: Soak, stored: audit.Stored) -> Iterator[str]:
    session = soak.sessions[2]
    session.shown = [each for each in session.shown if each.channel != MEMORIES]
    return audit.session(session, soak.books, stored)


def _gone(soak: Soak) -> set[str]:
    return soak.books.deleted


def _seq(shown: object) -> int:
    seq: int = shown.message["seq"]  # type: ignore[attr-defined]
    return seq


@pytest.mark.parametrize(
    "spoil",
    [lost_row, other_content, unknown_memory, not_shown, shown_twice, memory_not_shown],
)
def test_a_difference_is_found(
    soak: Soak,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Soak, audit.Stored], Iterator[str]],
) -> None:
    stored = audit.read_database(soak.bus.paths.database)
    books = soak.books
    monkeypatch.setattr(books, "content", dict(books.content))
    monkeypatch.setattr(books, "revisions", dict(books.revisions))
    for session in soak.sessions:
        monkeypatch.setattr(session, "shown", list(session.shown))
    assert list(spoil(soak, stored))
