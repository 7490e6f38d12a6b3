"""A database file that is deleted, replaced and put back under a writer."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

from agentbus.errors import StorageFailed
from agentbus.model.ports import Instant
from agentbus.wire.links import Accepted, Refused
from agentbus.writer.place import LOOK_SECONDS, Place
from tests.support.writer_world import World


class Store:
    """Only what is asked of it."""

    path = "/d/bus.sqlite3"

    def __init__(self) -> None:
        self.right = True
        self.looks = 0

    def in_place(self) -> bool:
        self.looks += 1
        return self.right


def at(seconds: float) -> Instant:
    return Instant(seconds, seconds)


def test_it_is_looked_at_ten_times_a_second_at_most_and_refused_until_it_is_right() -> None:
    store: Any = Store()
    place = Place(store)
    place.require(at(1.0))
    store.right = False
    place.require(at(1.0 + LOOK_SECONDS / 2))
    assert store.looks == 1
    for seconds in (1.2, 1.21):
        with pytest.raises(StorageFailed, match=r"/d/bus\.sqlite3 was .*agentbus stop"):
            place.require(at(seconds))
    assert store.looks == 2
    store.right = True
    place.require(at(1.4))


@pytest.mark.parametrize("replaced", [False, True])
def test_sends_into_a_file_that_is_not_there_are_refused(world: World, replaced: bool) -> None:
    sam = world.register()
    world.ask(world.append(sam.attachment, "a"))
    path = world.store.path
    os.rename(path, path + ".away")
    if replaced:
        shutil.copyfile(path + ".away", path)
    world.time += 1
    for name in ("b", "c"):
        (answer,) = world.ask(world.append(sam.attachment, name))
        assert isinstance(answer, Refused)
        assert answer.failure.code == "storage_error"
        assert path in answer.failure.message
    with world.store.snapshot():
        assert world.store.bus.meta().messages == 1
    os.replace(path + ".away", path)
    world.time += 1
    (answer,) = world.ask(world.append(sam.attachment, "b"))
    assert isinstance(answer, Accepted)
    assert answer.seq == 2
