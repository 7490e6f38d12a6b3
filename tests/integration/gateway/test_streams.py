"""Reads for the core, from a real Valkey."""

from __future__ import annotations

import asyncio

from agentbus.gateway.events import ReadStream, StreamRead
from agentbus.gateway.redis_link import connecting
from agentbus.gateway.streams import Streams
from agentbus.model.ids import ChannelId, Seq
from tests.integration.conftest import Valkey
from tests.integration.gateway.conftest import run_loop, until


def fill(valkey: Valkey, channel: int, count: int) -> None:
    valkey.run(
        (b"HSET", b"ab:meta", b"instance", b"bus", b"commit_id", b"1"),
        *(
            (b"XADD", b"s:%d" % channel, b"%d-0" % seq, b"e", b"{%d}" % seq, b"s", b"9")
            for seq in range(1, count + 1)
        ),
    )


def ask(ref: int, channel: int = 1, edge: int | None = 0, count: int = 1000) -> ReadStream:
    position = None if edge is None else Seq(edge)
    return ReadStream(ref, ChannelId(channel), position, edge is not None, count, 1 << 20)


class Reader:
    def __init__(self) -> None:
        self.replies: dict[int, StreamRead] = {}
        loop = asyncio.get_running_loop()
        self.streams = Streams(connecting("streams"), loop.call_soon, self._got)

    def _got(self, reply: StreamRead) -> None:
        assert reply.ref not in self.replies, "answered twice"
        self.replies[reply.ref] = reply

    def seqs(self, ref: int) -> list[int]:
        assert self.replies[ref].failure is None
        return [entry.seq for entry in self.replies[ref].entries]


def test_reads_that_are_asked_together_are_all_answered(valkey: Valkey) -> None:
    fill(valkey, 1, 500)
    fill(valkey, 2, 3)

    async def main() -> None:
        reader = Reader()
        reader.streams.use(valkey.socket_path)
        for ref in range(1, 20, 2):
            reader.streams.read(ask(ref, count=400))
            reader.streams.read(ask(ref + 1, channel=2, edge=None))
        assert reader.replies == {}
        await until(lambda: len(reader.replies) == 20)
        assert reader.seqs(1) == list(range(1, 401))
        assert reader.replies[1].more
        assert reader.seqs(20) == [1, 2, 3]
        assert not reader.replies[20].more
        reader.streams.close()

    run_loop(main())


def test_without_a_place_to_read_from_every_read_fails_in_a_later_turn() -> None:
    async def main() -> None:
        reader = Reader()
        reader.streams.read(ask(1))
        assert reader.replies == {}
        await until(lambda: 1 in reader.replies)
        assert reader.replies[1].failure is not None
        reader.streams.use("/tmp/ab-there-is-none.sock")
        reader.streams.read(ask(2))
        await until(lambda: 2 in reader.replies)
        failure = reader.replies[2].failure
        assert failure is not None
        assert failure.code == "unavailable"
        reader.streams.close()

    run_loop(main())


def test_a_server_that_dies_fails_what_was_asked_and_is_found_again(valkey: Valkey) -> None:
    fill(valkey, 1, 3)

    async def main() -> None:
        reader = Reader()
        reader.streams.use(valkey.socket_path)
        reader.streams.read(ask(1))
        await until(lambda: 1 in reader.replies)
        valkey.kill()
        reader.streams.read(ask(2))
        await until(lambda: 2 in reader.replies)
        assert reader.replies[2].failure is not None
        valkey.start()
        fill(valkey, 1, 2)
        reader.streams.read(ask(3))
        await until(lambda: 3 in reader.replies)
        assert reader.seqs(3) == [1, 2]
        reader.streams.close()

    run_loop(main())


def test_what_is_no_stream_fails_its_read_alone(valkey: Valkey) -> None:
    fill(valkey, 1, 3)
    valkey.run((b"SET", b"s:2", b"x"))

    async def main() -> None:
        reader = Reader()
        reader.streams.use(valkey.socket_path)
        reader.streams.read(ask(1, channel=2))
        reader.streams.read(ask(2))
        await until(lambda: len(reader.replies) == 2)
        assert reader.replies[1].failure is not None
        assert reader.seqs(2) == [1, 2, 3]
        reader.streams.close()

    run_loop(main())


def test_another_place_fails_what_is_under_way_once(valkey: Valkey) -> None:
    fill(valkey, 1, 3)

    async def main() -> None:
        reader = Reader()
        reader.streams.use(valkey.socket_path)
        reader.streams.read(ask(1))
        reader.streams.use(valkey.socket_path)
        reader.streams.read(ask(2))
        await until(lambda: len(reader.replies) == 2)
        assert reader.replies[1].failure is not None
        assert reader.seqs(2) == [1, 2, 3]
        reader.streams.read(ask(3))
        reader.streams.close()
        await until(lambda: 3 in reader.replies)
        assert reader.replies[3].failure is not None

    run_loop(main())
