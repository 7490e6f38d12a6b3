"""One connection to a real server, and what its loss means to those who wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import uvloop

from agentbus.errors import Unavailable
from agentbus.mirror import read
from agentbus.mirror.connection import connect
from agentbus.mirror.resp import Refused
from agentbus.model.ids import ChannelId, Seq

BOUND = 20.0


def run(coroutine: Any) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(BOUND):
            return await coroutine

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(bounded())


def test_requests_are_answered_in_order_refusals_among_them(valkey: Any) -> None:
    async def scenario() -> None:
        connection = await connect(valkey.socket_path)
        first = asyncio.ensure_future(connection.request((b"PING",), (b"NONSENSE",)))
        second = asyncio.ensure_future(connection.request((b"ECHO", b"x" * 1_000_000)))
        assert await second == [b"x" * 1_000_000]
        pong, refused = await first
        assert pong == b"PONG"
        assert isinstance(refused, Refused)
        with pytest.raises(Unavailable, match="NONSENSE"):
            await connection.demand((b"NONSENSE",))
        connection.close()

    run(scenario())


def test_callbacks_come_with_the_replies_of_their_request(valkey: Any) -> None:
    async def scenario() -> None:
        connection = await connect(valkey.socket_path)
        answers: list[Any] = []
        for number in range(100):
            commands = [(b"ECHO", b"%d" % number)] * (number % 3 + 1)
            connection.send(commands, answers.append)
        await connection.request((b"PING",))
        assert answers == [[b"%d" % number] * (number % 3 + 1) for number in range(100)]
        connection.close()

    run(scenario())


def test_a_lost_server_is_told_once_and_nobody_waits_for_ever(valkey: Any) -> None:
    async def scenario() -> None:
        lost: list[str] = []
        connection = await connect(valkey.socket_path, lost.append)
        waiting = asyncio.ensure_future(connection.request((b"BLPOP", b"nothing", b"0")))
        await connection_idle(valkey)
        valkey.kill()
        with pytest.raises(Unavailable, match="lost"):
            await waiting
        assert len(lost) == 1
        assert not connection.is_open
        with pytest.raises(Unavailable, match="no connection"):
            await connection.request((b"PING",))

    run(scenario())


async def connection_idle(valkey: Any) -> None:
    """Until the server has read the blocking command."""
    while b"blocked_clients:1" not in valkey.run((b"INFO", b"clients"))[0]:  # noqa: ASYNC110
        await asyncio.sleep(0)  # the server has no event to wait for


def test_closing_is_no_loss(valkey: Any) -> None:
    async def scenario() -> None:
        lost: list[str] = []
        connection = await connect(valkey.socket_path, lost.append)
        waiting = asyncio.ensure_future(connection.request((b"BLPOP", b"nothing", b"0")))
        await connection_idle(valkey)
        connection.close()
        with pytest.raises(Unavailable, match="closed"):
            await waiting
        assert lost == []

    run(scenario())


def test_a_socket_that_is_not_there_is_unavailable(short_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        run(connect(str(short_path / "none.sock")))


def test_a_peer_that_is_no_redis_is_a_loss(short_path: Path) -> None:
    async def scenario() -> None:
        async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()
            writer.close()

        path = str(short_path / "web.sock")
        server = await asyncio.start_unix_server(talk, path)
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        await connect(path, lost.set_result)
        assert "no reply" in await lost
        server.close()
        await server.wait_closed()

    run(scenario())


def test_pages_of_a_real_stream(valkey: Any) -> None:
    for seq in range(3, 103):
        valkey.run((b"XADD", b"s:1", b"%d-0" % seq, b"e", b"x" * seq, b"s", b"9"))

    async def scenario() -> None:
        connection = await connect(valkey.socket_path)
        channel = ChannelId(1)
        page = await read.after(connection, channel, Seq(50), count=20, max_bytes=10_000)
        assert [entry.seq for entry in page.entries] == list(range(51, 71))
        assert page.more
        page = await read.before(connection, channel, Seq(10), count=50, max_bytes=10_000)
        assert [entry.seq for entry in page.entries] == list(range(3, 10))
        assert not page.more
        assert page.entries[0] == read.Entry(Seq(3), page.entries[0].session_id, b"xxx")
        connection.close()

    run(scenario())
