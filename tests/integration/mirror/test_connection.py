"""One connection to a real server, and what its loss means to those who wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import uvloop

from agentbus.errors import Unavailable
from agentbus.mirror.connection import Connection, connect
from agentbus.mirror.read import Entry, Page, Reading
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.model.ids import ChannelId, Seq, SessionId

BOUND = 20.0


def run(coroutine: Any) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(BOUND):
            return await coroutine

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(bounded())


async def ask(connection: Connection, *commands: Command) -> list[Reply]:
    replies: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
    connection.send(commands, replies.set_result)
    return await replies


def test_replies_come_in_order_refusals_among_them(valkey: Any) -> None:
    async def scenario() -> None:
        connection = await connect(valkey.socket_path)
        answers: list[list[Reply]] = []
        connection.send([(b"PING",), (b"NONSENSE",)], answers.append)
        connection.send([(b"ECHO", b"x" * 1_000_000)], answers.append)
        for number in range(100):
            commands = [(b"ECHO", b"%d" % number)] * (number % 3 + 1)
            connection.send(commands, answers.append)
        assert await ask(connection, (b"PING",)) == [b"PONG"]
        assert answers[0][0] == b"PONG"
        assert isinstance(answers[0][1], Refused)
        assert answers[1] == [b"x" * 1_000_000]
        assert answers[2:] == [[b"%d" % number] * (number % 3 + 1) for number in range(100)]
        connection.close()

    run(scenario())


def test_a_lost_server_is_told_once(valkey: Any) -> None:
    async def scenario() -> None:
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        connection = await connect(valkey.socket_path, lost.set_result)
        answers: list[list[Reply]] = []
        connection.send([(b"BLPOP", b"nothing", b"0")], answers.append)
        await ask_blocked(valkey)
        valkey.kill()
        assert "lost" in await lost
        assert not connection.is_open
        connection.send([(b"PING",)], answers.append)
        connection.close()
        assert answers == []

    run(scenario())


async def ask_blocked(valkey: Any) -> None:
    """Until the server has read the blocking command."""
    while b"blocked_clients:1" not in valkey.run((b"INFO", b"clients"))[0]:  # noqa: ASYNC110
        await asyncio.sleep(0)  # the server has no event to wait for


def test_closing_is_no_loss(valkey: Any) -> None:
    async def scenario() -> None:
        lost: list[str] = []
        connection = await connect(valkey.socket_path, lost.append)
        await ask(connection, (b"PING",))
        connection.close()
        await asyncio.sleep(0)
        assert lost == []

    run(scenario())


def test_whoever_closes_at_a_reply_hears_no_more(valkey: Any) -> None:
    async def scenario() -> None:
        lost: list[str] = []
        connection = await connect(valkey.socket_path, lost.append)
        first = asyncio.get_running_loop().create_future()
        heard: list[list[Any]] = []

        def done(replies: list[Any]) -> None:
            connection.close()
            first.set_result(replies)

        connection.send([(b"PING",)], done)
        connection.send([(b"PING",)], heard.append)
        assert await first == [b"PONG"]
        connection.data_received(b"+PONG\r\n")  # what was read in the same go
        assert (lost, heard) == ([], [])

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

    def page(edge: int, *, forward: bool, count: int) -> Page:
        reading = Reading(ChannelId(1), Seq(edge), forward=forward, count=count, max_bytes=10_000)
        while not reading.done:
            reading.take(valkey.run(reading.command())[0])
        return reading.page()

    forward = page(50, forward=True, count=20)
    assert [entry.seq for entry in forward.entries] == list(range(51, 71))
    assert forward.more
    backward = page(10, forward=False, count=50)
    assert [entry.seq for entry in backward.entries] == list(range(3, 10))
    assert not backward.more
    assert backward.entries[0] == Entry(Seq(3), SessionId(9), b"xxx")
