"""The gateway as a process of its own: real sockets, a scripted writer and projector."""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop

from agentbus import __version__
from agentbus.config import Settings
from agentbus.gateway import main
from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId, SubscriptionId
from agentbus.runtime import logs
from agentbus.runtime.context import ChildContext
from agentbus.runtime.paths import locate, prepare
from agentbus.wire import framing
from agentbus.wire.links import (
    CONTROL,
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    Accepted,
    Append,
    ChannelTop,
    Done,
    FromChild,
    GatewayHello,
    GatewayToProjector,
    GatewayToWriter,
    Hand,
    Outcomes,
    Projection,
    Register,
    Registered,
    SubscriptionInfo,
    Visible,
    VisibleMessage,
    Welcome,
)
from agentbus.wire.rpc import PROTOCOL
from tests.support.link_end import BOUND, Peer

AT = "2026-11-30T16:40:27.123Z"
GENERAL = ChannelId(1)


def envelope(seq: int, content: str = "x") -> bytes:
    return msgspec.json.encode({"seq": seq, "sent_at": AT, "content": content})


class Adapter:
    """A connection."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(BOUND)
        self.socket.connect(path)
        self._file = self.socket.makefile("rb")
        self._ids = itertools.count(1)
        self.notes: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, method: str, **params: Any) -> int:
        number = next(self._ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.write(msgspec.json.encode(request) + b"\n")
        return number

    def line(self) -> dict[str, Any]:
        line = self._file.readline()
        assert line.endswith(b"\n"), "the gateway closed the connection"
        found: dict[str, Any] = msgspec.json.decode(line)
        return found

    def reply(self, number: int | None) -> dict[str, Any]:
        """The result, or the error, of a request."""
        while True:
            line = self.line()
            if "method" in line:
                self.notes.append(line)
            elif line["id"] == number:
                found: dict[str, Any] = line.get("result", line.get("error"))
                return found

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.reply(self.ask(method, **params))

    def note(self, method: str) -> dict[str, Any]:
        """The params of the next notification of that method."""
        while True:
            for note in self.notes:
                if note["method"] == method:
                    self.notes.remove(note)
                    found: dict[str, Any] = note["params"]
                    return found
            self.notes.append(self.line())

    def hello(self) -> dict[str, Any]:
        return self.call("hello", protocol=PROTOCOL, version=__version__)

    def at_end(self) -> bool:
        """Whether the gateway has closed the connection; waits for that or a line."""
        try:
            return not self._file.readline()
        except ConnectionError:
            return True

    def close(self) -> None:
        self._file.close()
        self.socket.close()


class Gateway:
    """A gateway that runs; the test is its supervisor, writer and projector."""

    def __init__(self, directory: Path, descriptors: int = 0, **settings: Any) -> None:
        self.settings = Settings(data_directory=str(directory / "data"), **settings)
        self.paths = locate(self.settings, {"AGENTBUS_RUNTIME_DIR": str(directory / "run")})
        prepare(self.paths)
        self.control = Peer(FromChild)
        self.writer = Peer(GatewayToWriter)
        self.projector = Peer(GatewayToProjector)
        self.adapters: list[Adapter] = []
        self.commit = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.paths.socket)
        self._listener.listen(128)
        self._descriptors = descriptors
        self.pid: int | None = os.fork()
        if self.pid == 0:
            self._live()
        for peer in (self.control, self.writer, self.projector):
            peer.theirs.close()
        self._listener.close()

    def _live(self) -> None:
        code = 99
        try:
            self._listener.setblocking(False)
            for peer in (self.control, self.writer, self.projector):
                peer.socket.close()
                peer.theirs.setblocking(False)
            if self._descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self._descriptors, 4096))
            logs.configure("gateway", self.paths, self.settings)
            links = {
                GATEWAY_WRITER: self.writer.theirs,
                PROJECTOR_GATEWAY: self.projector.theirs,
            }
            context = ChildContext(
                "gateway",
                self.settings,
                "/etc/agentbus.json",
                self.paths,
                self.control.theirs,
                links,
                self._listener,
            )
            code = main.run(context)
        finally:
            os._exit(code)

    # ---- its peers

    def greet(self, redis: str | None = None, *tops: ChannelTop) -> None:
        """Writer and projector come; the bus is ready."""
        hello = self.writer.expect(GatewayHello)
        channels = [ChannelInfo(GENERAL, "general", "ordinary", Seq(0))]
        incarnation = hello.incarnation or 1
        self.writer.send(Welcome(incarnation, "bus", CommitId(self.commit), channels))
        self.project(redis, *tops)

    def project(self, redis: str | None = None, *tops: ChannelTop, ready: bool = True) -> None:
        commit = CommitId(self.commit)
        self.projector.send(Projection("boot", ready, "", 0, commit, redis, list(tops)))

    def replace_writer(self) -> None:
        """The writer has died; another takes its place."""
        self.writer.socket.close()
        self.writer = Peer(GatewayToWriter)
        frame = bytes(framing.encode(Hand(GATEWAY_WRITER, 1)))
        socket.send_fds(self.control.socket, [frame], [self.writer.theirs.fileno()])
        self.writer.theirs.close()

    def connect(self) -> Adapter:
        adapter = Adapter(self.paths.socket)
        self.adapters.append(adapter)
        return adapter

    def member(self, session: int, *, position: int = 0) -> tuple[Adapter, str]:
        """An adapter with one attachment that is subscribed to `general`."""
        adapter = self.connect()
        adapter.hello()
        number = adapter.ask("register", application="x", session=str(session))
        frame = self.writer.expect(Register)
        held = SubscriptionInfo(
            SubscriptionId(session), "general", GENERAL, Seq(position), 2e9, False
        )
        self.outcomes(
            Registered(frame.ref, frame.attachment, SessionId(session), "Sam", "Sam", False, [held])
        )
        attachment: str = adapter.reply(number)["attachment"]
        return adapter, attachment

    def outcomes(self, *outcomes: Any) -> None:
        self.writer.send(Outcomes(CommitId(self.commit), list(outcomes)))

    def accept(self, frame: Append, seq: int) -> None:
        self.commit += 1
        self.outcomes(Accepted(frame.ref, frame.message_id, Seq(seq), AT, False))

    def done(self, ref: int) -> None:
        self.outcomes(Done(ref))

    def show(self, *envelopes: tuple[int, bytes]) -> None:
        messages = [
            VisibleMessage(GENERAL, Seq(seq), SessionId(900), body) for seq, body in envelopes
        ]
        self.projector.send(Visible(CommitId(self.commit), messages))

    # ---- its end

    def log(self) -> str:
        return Path(self.paths.log("gateway")).read_text()

    def wait_for_log(self, text: str) -> None:
        wait_until(lambda: os.path.exists(self.paths.log("gateway")) and text in self.log())

    def wait(self) -> int:
        """Until it has ended by itself; the exit code."""
        assert self.pid is not None
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        for adapter in self.adapters:
            adapter.close()
        for peer in (self.control, self.writer, self.projector):
            peer.socket.close()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.005)


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Runs a test on the loop that the gateway has."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(main, BOUND))


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop turn until then; `run_loop` bounds it."""
    while not condition():  # noqa: ASYNC110 - what is tested knows no events of asyncio
        await asyncio.sleep(0.001)


Make = Callable[..., Gateway]

__all__ = ["CONTROL", "Adapter", "Gateway", "Make"]


@pytest.fixture
def make(short_path: Path) -> Iterator[Make]:
    """Makes gateways with settings."""
    made: list[Gateway] = []

    def one(**settings: Any) -> Gateway:
        made.append(Gateway(short_path, **settings))
        return made[-1]

    yield one
    for gateway in made:
        gateway.close()


@pytest.fixture
def gateway(make: Make) -> Gateway:
    """A gateway on a bus that is ready."""
    made = make()
    made.greet()
    return made
