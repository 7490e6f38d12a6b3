"""Look-ups in a real database, beside the loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agentbus.gateway.events import Find, Found
from agentbus.gateway.lookups import Lookups
from tests.integration.gateway.conftest import run_loop, until
from tests.support.writer_world import World


def test_look_ups_are_answered_once_in_a_later_turn(tmp_path: Path) -> None:
    found: list[Found] = []
    with World(tmp_path) as world:
        sam = world.register("sam").attachment
        world.ask(*(world.append(sam, f"m{number}", f"text {number}") for number in range(20)))

        async def main() -> None:
            lookups = Lookups(asyncio.get_running_loop(), world.path, found.append)
            for number in range(21):
                lookups.find(Find(number, f"m{number}", True))
            lookups.find(Find(21, "m1", False))
            assert found == []
            await until(lambda: len(found) == 22)
            lookups.close()

        run_loop(main())
    bodies = {each.ref: each.envelope for each in found}
    assert all(f'"text {number}"'.encode() in (bodies[number] or b"") for number in range(20))
    assert (bodies[20], bodies[21]) == (None, None)


def test_a_database_that_is_not_there_is_a_failure_until_it_is(tmp_path: Path) -> None:
    found: list[Found] = []

    async def main() -> None:
        lookups = Lookups(asyncio.get_running_loop(), str(tmp_path / "bus.sqlite3"), found.append)
        lookups.find(Find(1, "m", True))
        await until(lambda: len(found) == 1)
        assert found[0].failure is not None
        with World(tmp_path) as world:
            world.ask(world.append(world.register("sam").attachment, "m", "text"))
            lookups.find(Find(2, "m", True))
            await until(lambda: len(found) == 2)
        assert b"text" in (found[1].envelope or b"")
        lookups.close()

    run_loop(main())
