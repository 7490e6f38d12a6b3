"""The adapters' sockets on a real loop: nothing lost, nothing reordered, nobody held up."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbus.gateway import sockets
from agentbus.gateway.holdings import Holdings
from agentbus.gateway.sockets import Acceptor, AdapterSocket
from agentbus.wire.lines import Overlong
from agentbus.wire.rpc import MAX_LINE
from tests.integration.gateway.conftest import run_loop, until


class Ends:
    """An adapter socket and its peer."""

    def __init__(self, bound: int = 1 << 30, holdings: Holdings | None = None) -> None:
        self.peer, self.ours = socket.socketpair()
        self.peer.setblocking(False)
        self.lines: list[bytes | Overlong] = []
        self.ended: list[int] = []
        self.socket = AdapterSocket(
            asyncio.get_running_loop(),
            self.ours,
            7,
            bound,
            holdings or Holdings(1 << 30),
            self._got,
            self.ended.append,
        )
        self.socket.open()

    def _got(self, connection: int, lines: list[bytes | Overlong]) -> None:
        assert connection == 7
        self.lines += lines

    async def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += await asyncio.get_running_loop().sock_recv(self.peer, 1 << 20)
        return data

    def close(self) -> None:
        self.socket.close()
        self.socket.close()
        self.peer.close()


def test_lines_are_cut_out_of_whatever_pieces_come() -> None:
    async def main() -> None:
        ends = Ends()
        for piece in (b"a", b"b\nc\n\nd", b"d\n"):
            ends.peer.send(piece)
            await asyncio.sleep(0)
        await until(lambda: len(ends.lines) == 3)
        assert ends.lines == [b"ab", b"c", b"dd"]
        ends.close()

    run_loop(main())


def test_what_the_peer_wrote_before_it_ended_is_read_first() -> None:
    async def main() -> None:
        ends = Ends()
        ends.peer.send(b"x\n" * 1000)
        ends.peer.close()
        await until(lambda: ends.ended == [7])
        assert len(ends.lines) == 1000
        ends.close()

    run_loop(main())


def test_a_write_that_fails_loses_nothing_of_what_is_to_be_read() -> None:
    async def main() -> None:
        ends = Ends()
        ends.socket.send([b"unread\n"])
        ends.socket.flush()
        ends.peer.send(b"x\n" * 1000)
        ends.peer.close()
        ends.socket.send([b"nobody reads this\n"])
        ends.socket.flush()
        ends.socket.send([b"nor this\n"])
        ends.socket.flush()
        assert ends.socket.unread == 0
        await until(lambda: ends.ended == [7])
        assert len(ends.lines) == 1000
        ends.close()

    run_loop(main())


def test_many_tiny_pieces_that_a_socket_takes_in_part_come_once() -> None:
    async def main() -> None:
        ends = Ends()
        real = ends.socket._socket
        ends.socket._socket = _Sparing(real)  # type: ignore[assignment]
        lines = [b"%d\n" % n for n in range(3 * sockets.PIECES)]
        ends.socket.send(lines)
        ends.socket.flush()
        expected = b"".join(lines)
        assert await ends.read(len(expected)) == expected
        await until(lambda: ends.socket.unread == 0)
        ends.close()

    run_loop(main())


class _Sparing:
    """A socket that takes all but the last bytes of what it is given."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def send(self, data: bytes) -> int:
        return self._sock.send(data[: max(1, len(data) - 7)])

    def sendmsg(self, pieces: list[bytes]) -> int:
        return self.send(b"".join(pieces))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


def test_large_outputs_arrive_whole_and_in_order() -> None:
    async def main() -> None:
        ends = Ends()
        lines = [b"%d:" % n + b"x" * (n * 7919 % 900_000) + b"\n" for n in range(30)]
        ends.socket.send(lines)
        ends.socket.flush()
        assert ends.socket.unread > 0
        assert await ends.read(sum(map(len, lines))) == b"".join(lines)
        await until(lambda: ends.socket.unread == 0)
        ends.socket.send([b"after\n"])
        ends.socket.flush()
        assert await ends.read(6) == b"after\n"
        ends.close()

    run_loop(main())


def test_lines_in_pieces_arrive_whole_among_the_others() -> None:
    async def main() -> None:
        ends = Ends()
        shared = b"y" * 150_000
        sent = []
        for n in range(1500):
            pieces = [b"%d:" % n, *([shared] if n % 50 == 0 else [b"", b"z"]), b"\n"]
            ends.socket.send([*pieces, b"line\n"])
            sent += [*pieces, b"line\n"]
        ends.socket.flush()
        assert await ends.read(sum(map(len, sent))) == b"".join(sent)
        await until(lambda: ends.socket.unread == 0)
        ends.socket.send([b"af", b"ter\n"])
        ends.socket.flush()
        assert await ends.read(6) == b"after\n"
        ends.close()

    run_loop(main())


def test_many_tiny_pieces_of_which_few_are_taken_at_once_arrive_whole() -> None:
    async def main() -> None:
        ends = Ends()
        ends.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the least there is
        pieces = [b"%d" % (number % 10) for number in range(sockets.JOINED_BYTES)]
        ends.socket.send(pieces)
        ends.socket.flush()
        assert ends.socket.unread < len(pieces) - sockets.PIECES, "more were taken than one writes"
        assert ends.socket.unread, "and not all"
        assert await ends.read(len(pieces)) == b"".join(pieces)
        assert not ends.socket.unread
        ends.close()

    run_loop(main())


def test_pieces_for_who_does_not_read_any_more_are_dropped() -> None:
    async def main() -> None:
        ends = Ends()
        ends.peer.close()
        for _ in range(2):
            ends.socket.send([b"x" * 20_000, b"\n"])
            ends.socket.flush()
            assert ends.socket.unread == 0
        ends.close()

    run_loop(main())


def test_who_leaves_too_much_unread_is_cut_off_and_its_reports_count() -> None:
    async def main() -> None:
        ends = Ends(bound=1 << 20)
        ends.peer.send(b"report\n")
        ends.socket.send([b"x" * (3 << 20)])
        ends.socket.flush()
        assert (ends.lines, ends.ended) == ([b"report"], [7])
        ends.socket.send([b"y"])
        ends.socket.flush()
        ends.close()

    run_loop(main())


def test_who_holds_most_is_cut_off_where_all_hold_too_much() -> None:
    async def main() -> None:
        holdings = Holdings(300_000)
        small, large, silent = (Ends(holdings=holdings) for _ in range(3))
        for ends, size in ((small, 100_000), (large, 190_000)):
            await asyncio.get_running_loop().sock_sendall(ends.peer, b"first\n" + b"x" * size)
        await until(lambda: holdings.total == 290_000)
        silent.socket.send([b"y" * 10_000_000])
        silent.socket.flush()  # what its socket does not take is held too
        await until(lambda: silent.ended == [7])
        assert holdings.total == 290_000
        await asyncio.get_running_loop().sock_sendall(small.peer, b"x" * 20_000)
        await until(lambda: large.ended == [7])
        assert (small.ended, large.lines) == ([], [b"first"])
        await asyncio.get_running_loop().sock_sendall(small.peer, b"\n")
        await until(lambda: len(small.lines) == 2)
        assert len(small.lines[1]) == 120_000
        assert holdings.total == 0
        for ends in (small, large, silent):
            ends.close()

    run_loop(main())


def test_closing_can_wait_for_what_is_to_be_written() -> None:
    async def main() -> None:
        ends = Ends()
        ends.socket.send([b"x" * (1 << 20)])
        ends.socket.close_when_written()
        assert len(await ends.read(1 << 20)) == 1 << 20
        assert await asyncio.get_running_loop().sock_recv(ends.peer, 1) == b""
        assert ends.ended == []
        ends.close()

    run_loop(main())


def test_a_peer_that_writes_without_end_does_not_starve_the_others() -> None:
    async def main() -> None:
        loud, quiet = Ends(), Ends()
        with contextlib.suppress(BlockingIOError):
            for _ in range(1000):
                loud.peer.send(b"x" * 65536)
        quiet.peer.send(b"me\n")
        await until(lambda: quiet.lines == [b"me"])
        loud.close()
        quiet.close()

    run_loop(main())


def test_an_overlong_line_is_told_once_and_the_next_is_read() -> None:
    async def main() -> None:
        ends = Ends()
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(ends.peer, b"x" * (MAX_LINE + 1) + b"\nnext\n")
        await until(lambda: len(ends.lines) == 2)
        assert isinstance(ends.lines[0], Overlong)
        assert ends.lines[1] == b"next"
        ends.close()

    run_loop(main())


# ---- accepting


@pytest.fixture
def listener(short_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(short_path / "s"))
        sock.listen(100)
        yield sock


class Accepted:
    def __init__(self, listener: socket.socket) -> None:
        self.sockets: list[tuple[socket.socket, bool]] = []
        self.clients: list[socket.socket] = []
        self._path = listener.getsockname()
        loop = asyncio.get_running_loop()
        self.acceptor = Acceptor(loop, listener, lambda *each: self.sockets.append(each))
        self.acceptor.open()

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        client.connect(self._path)
        self.clients.append(client)
        return client

    def close(self) -> None:
        self.acceptor.close()
        for client in self.clients + [sock for sock, _ in self.sockets]:
            client.close()


def test_connections_of_the_same_user_are_ours(listener: socket.socket) -> None:
    async def main() -> None:
        accepted = Accepted(listener)
        for _ in range(100):
            accepted.connect()
        await until(lambda: len(accepted.sockets) == 100)
        assert all(ours for _, ours in accepted.sockets)
        accepted.close()

    run_loop(main())


def test_another_listener_takes_over_and_who_waited_at_the_old_one_is_taken(
    listener: socket.socket, short_path: Path
) -> None:
    async def main() -> None:
        accepted = Accepted(listener.dup())
        waiting = [accepted.connect() for _ in range(3)]
        fresh = socket.socket(socket.AF_UNIX)
        accepted._path = str(short_path / "fresh")
        fresh.bind(accepted._path)
        fresh.listen(10)
        accepted.acceptor.use(fresh)
        assert len(accepted.sockets) == len(waiting)
        accepted.connect()
        await until(lambda: len(accepted.sockets) == len(waiting) + 1)
        accepted.close()
        fresh.close()

    run_loop(main())


def test_connections_of_others_are_not(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        accepted = Accepted(listener)
        monkeypatch.setattr(sockets.platform, "peer_uid", lambda _: os.geteuid() + 1)
        accepted.connect()
        await until(lambda: len(accepted.sockets) == 1)
        monkeypatch.setattr(sockets.platform, "peer_uid", gone)
        accepted.connect()
        await until(lambda: len(accepted.sockets) == 2)
        assert [ours for _, ours in accepted.sockets] == [False, False]
        accepted.close()

    def gone(_: socket.socket) -> int:
        raise OSError(errno.ENOTCONN, "gone")

    run_loop(main())


class Full:
    """A listening socket of a process that is out of descriptors."""

    def __init__(self, listener: socket.socket, failures: int) -> None:
        self._listener = listener
        self.failures = failures

    def accept(self) -> tuple[socket.socket, Any]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "too many open files")
        return self._listener.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)


def test_without_descriptors_a_connection_is_closed_and_the_next_is_taken(
    listener: socket.socket,
) -> None:
    async def main() -> None:
        accepted = Accepted(Full(listener, 1))  # type: ignore[arg-type]
        refused = accepted.connect()
        assert await asyncio.get_running_loop().sock_recv(refused, 1) == b""
        accepted.connect()
        await until(lambda: len(accepted.sockets) == 1)
        accepted.close()

    run_loop(main())


def test_without_even_a_reserve_it_waits_a_moment_instead_of_spinning(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        full = Full(listener, 1)
        accepted = Accepted(full)  # type: ignore[arg-type]
        accepted.acceptor._give_reserve()
        accepted.connect()
        await until(lambda: len(accepted.sockets) == 1)
        assert full.failures == 0
        accepted.close()
        accepted.acceptor._resume()

    run_loop(main())
