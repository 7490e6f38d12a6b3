from __future__ import annotations

import asyncio

import pytest

from agentbus.runtime import tasks


def test_a_task_runs_without_being_awaited():
    async def main():
        done = asyncio.Event()

        async def work():
            done.set()

        tasks.start(work(), "work")
        await asyncio.wait_for(done.wait(), 5)

    asyncio.run(main())


def test_a_crash_is_logged_and_passed_on(caplog):
    async def main():
        crashed = asyncio.get_running_loop().create_future()

        async def work():
            raise ValueError("oh")

        tasks.start(work(), "work", on_crash=crashed.set_result)
        return await asyncio.wait_for(crashed, 5)

    assert isinstance(asyncio.run(main()), ValueError)
    assert [(record.message, record.fields["task"]) for record in caplog.records] == [
        ("task_crashed", "work")
    ]


def test_cancelling_is_no_crash(caplog):
    async def main():
        task = tasks.start(asyncio.sleep(60), "sleep", on_crash=lambda _: pytest.fail("no crash"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not caplog.records
