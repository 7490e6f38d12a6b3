"""Keeping the WAL short."""

from __future__ import annotations

from typing import Any

import pytest

from agentbus.errors import StorageFailed
from agentbus.model.ports import Instant
from agentbus.sqlite import WAL_RESTART_BYTES
from agentbus.wire.events import Note
from agentbus.writer.tidy import IDLE_SECONDS, RETRY_SECONDS, WAL_LIMIT_BYTES, Tidy


class Store:
    """Only what is asked of it."""

    def __init__(self) -> None:
        self.size = 1000
        self.asked: list[str] = []
        self.error: Exception | None = None

    def wal_bytes(self) -> int:
        return self.size

    def checkpoint(self, mode: str) -> bool:
        self.asked.append(mode)
        if self.error is not None:
            raise self.error
        return True


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def tidy(store: Store) -> Tidy:
    made: Any = store
    return Tidy(made)


def at(seconds: float) -> Instant:
    return Instant(seconds, seconds)


def test_an_idle_writer_moves_the_wal_once(tidy: Tidy, store: Store) -> None:
    tidy.changed(at(10))
    assert tidy.at == 10 + RETRY_SECONDS
    tidy.due(at(10.5), idle=True)
    assert tidy.at == 10 + IDLE_SECONDS
    assert store.asked == []
    tidy.due(at(11.0), idle=False)
    assert store.asked == []
    tidy.due(at(11.1), idle=True)
    assert (store.asked, tidy.at) == (["passive"], None)
    tidy.due(at(20), idle=True)
    assert store.asked == ["passive"]


def test_a_long_wal_is_truncated_even_under_load_and_until_it_is_short(
    tidy: Tidy, store: Store
) -> None:
    store.size = WAL_RESTART_BYTES + 1
    tidy.changed(at(10))
    tidy.due(at(10), idle=False)
    tidy.due(at(10 + RETRY_SECONDS / 2), idle=False)
    assert store.asked == ["truncate"]
    assert tidy.at == pytest.approx(10 + RETRY_SECONDS)
    tidy.due(at(10 + RETRY_SECONDS), idle=True)
    assert store.asked == ["truncate", "truncate"]
    store.size = 0
    tidy.due(at(20), idle=True)
    assert (store.asked[-1], tidy.at) == ("passive", None)


def test_a_reader_that_never_ends_is_complained_about_once(tidy: Tidy, store: Store) -> None:
    store.size = WAL_LIMIT_BYTES + 1
    tidy.changed(at(0))
    notes = [tidy.due(at(float(second)), idle=False) for second in range(5)]
    assert [len(found) for found in notes] == [1, 0, 0, 0, 0]
    assert isinstance(notes[0][0], Note)
    assert notes[0][0].action == "wal_held_back"


def test_a_checkpoint_that_fails_is_told_and_survived(tidy: Tidy, store: Store) -> None:
    store.error = StorageFailed("full")
    tidy.changed(at(0))
    (note,) = tidy.due(at(5), idle=True)
    assert isinstance(note, Note)
    assert note.action == "checkpoint_failed"
    assert len(tidy.last()) == 1
