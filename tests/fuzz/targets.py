"""What is fuzzed: functions of bytes that raise where a promise about any input is broken.

Each takes whatever a fuzzer makes. A first byte or two choose what a stranger cannot (which link,
how the bytes are cut); the rest is read as it would be from a pipe or a socket.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from agentbus.adapter.events import DaemonData, StdinClosed, StdinData
from agentbus.adapter.identity import (
    PROJECT_FILE,
    Given,
    Project,
    application_of,
    find_project,
)
from agentbus.client.connection import Connection
from agentbus.config import Settings, load
from agentbus.errors import AgentbusError, ConfigInvalid, InternalError, InvalidArgument
from agentbus.gateway.events import Broke
from agentbus.model.names import (
    NAME_BYTES,
    base_name,
    check_name,
    check_new_name,
    one_line,
)
from agentbus.search import normalise
from agentbus.search.document import EVERY
from agentbus.search.fts5.render import expression
from agentbus.search.query import parse
from agentbus.search.request import build
from agentbus.wire import links
from agentbus.wire.framing import FrameDecoder, encode
from agentbus.wire.lines import LineDecoder, Overlong
from agentbus.wire.links import SearchFilter
from agentbus.wire.rpc import METHODS
from tests.support.adapter_world import World
from tests.support.gateway_rig import Rig
from tests.support.search_reference import finds

Target = Callable[[bytes], None]

UNIONS: tuple[Any, ...] = (
    links.ToChild,
    links.FromChild,
    links.GatewayToWriter,
    links.WriterToGateway,
    links.WriterToProjector,
    links.ProjectorToWriter,
    links.ProjectorToGateway,
    links.GatewayToProjector,
    links.GatewayToIndexer,
    links.IndexerToGateway,
)

LEAVE_SECONDS = 2.0
"""When an adapter has ended at the latest once its stdin has."""


def pieces(data: bytes, size: int) -> list[bytes]:
    """The same bytes, so many at a time."""
    size = max(1, size)
    return [data[at : at + size] for at in range(0, len(data), size)]


def _header(data: bytes, count: int) -> tuple[bytes, bytes]:
    return data[:count].ljust(count, b"\0"), data[count:]


# between the daemon's processes


def frames(data: bytes) -> None:
    """Frames of a link: read the same however they are cut, written as they were read."""
    (chosen, size), body = _header(data, 2)
    union = UNIONS[chosen % len(UNIONS)]
    whole, failed = _decode_frames(union, [body])
    cut, cut_failed = _decode_frames(union, pieces(body, size))
    assert failed == cut_failed
    assert failed or whole == cut
    for frame in cut:
        again = FrameDecoder[Any](union).feed(frame)
        assert [bytes(encode(message)) for message in again] == [frame]


def _decode_frames(union: Any, parts: list[bytes]) -> tuple[list[bytes], bool]:
    """What was read, written again; and whether something could not be read."""
    decoder = FrameDecoder[Any](union)
    read: list[bytes] = []
    for part in parts:
        try:
            read += [bytes(encode(message)) for message in decoder.feed(part)]
        except InternalError:
            return read, True
    return read, False


# lines, as everybody outside speaks them


def lines(data: bytes) -> None:
    """Lines are found the same however they are cut, and no more is held than the ceiling."""
    (low, size), body = _header(data, 2)
    ceiling = 1 + low
    decoder = LineDecoder(ceiling)
    found: list[bytes | Overlong] = []
    for part in pieces(body, size):
        found += decoder.feed(part)
        assert decoder.pending < ceiling
    *ended, rest = body.split(b"\n")
    wanted = [line for line in ended if len(line) >= ceiling or _trimmed(line)]
    assert len(found) == len(wanted)
    for got, line in zip(found, wanted, strict=True):
        if isinstance(got, Overlong):
            assert len(line) >= ceiling
            assert line.startswith(got.head)
            assert line.endswith(got.tail)
        else:
            assert got == _trimmed(line)
    assert decoder.pending == (len(rest) if len(rest) < ceiling else 0)


def _trimmed(line: bytes) -> bytes:
    return line.removesuffix(b"\r").strip(b" \t")


def rpc(data: bytes) -> None:
    """Lines to the gateway of somebody who is attached: each is answered or refused, nothing
    breaks, and whatever the gateway asks of other processes passes a link unchanged."""
    (size,), body = _header(data, 1)
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.effects.clear()
    decoder = LineDecoder(64 * 1024)
    for part in pieces(body.replace(b"@", attachment.encode()), 1 + 16 * size):
        for line in decoder.feed(part):
            _say(rig, connection, line)
    for _ in range(3):
        rig.sleep(1.0)
    rig.disconnect(connection)
    broken = [effect for effect in rig.effects if isinstance(effect, Broke)]
    assert not broken, broken
    for union, sent in (
        (links.GatewayToWriter, rig.frames),
        (links.GatewayToProjector, rig.asked),
        (links.GatewayToIndexer, rig.searches),
    ):
        stream = b"".join(bytes(encode(message)) for message in sent)
        assert FrameDecoder[Any](union).feed(stream) == sent


def _say(rig: Rig, connection: int, line: bytes | Overlong) -> None:
    before = len(rig.inbox[connection])
    rig.line(connection, line)
    answers = [each for each in rig.inbox[connection][before:] if "method" not in each]
    assert len(answers) <= 1
    for each in answers:
        assert each["jsonrpc"] == "2.0"
        assert ("error" in each) != ("result" in each)


def replies(data: bytes) -> None:
    """What a daemon says to a client: read, or refused as such, however it is cut."""
    (size,), body = _header(data, 1)
    outcomes = []
    for parts in ([body], pieces(body, size)):
        connection = Connection()
        for method in METHODS:
            connection.request(method, msgspec.json.decode(b"null"))
        read = 0
        try:
            for part in parts:
                read += len(connection.feed(part))
            outcomes.append(read)
        except InternalError:
            outcomes.append(-1)
    assert outcomes[0] == outcomes[1]


# the adapter between a harness and a daemon


def _world() -> World:
    return World(Given(fallback="random"), Project("/code/repo", "repo"), Settings())


def mcp(data: bytes) -> None:
    """Lines from a harness: no line ends the adapter, each request is answered at most once, and
    the end of its input ends it in time."""
    (size,), body = _header(data, 1)
    world = _world()
    world.begin()
    for part in pieces(body, 1 + 16 * size):
        world.event(StdinData(part))
    answered = [each for each in _messages(world) if "method" not in each]
    asked = body.count(b"{") + body.count(b"\n") + 1
    assert len(answered) <= asked
    assert world.exit_code is None
    world.event(StdinClosed())
    world.pass_time(LEAVE_SECONDS)
    assert world.exit_code == 0


def _messages(world: World) -> list[dict[str, Any]]:
    """All that was written, batches apart."""
    written: list[Any] = world.lines
    found = [each for line in written for each in (line if isinstance(line, list) else [line])]
    assert all(each["jsonrpc"] == "2.0" for each in found)
    return found


def daemon(data: bytes) -> None:
    """What a daemon says to an adapter with calls under way: nonsense costs the connection, which
    is made anew, and never the adapter or a call."""
    (size,), body = _header(data, 1)
    world = _world()
    world.begin().greet()
    world.answers["send"] = None
    waiting = world.call("recv", wait_seconds=5)
    sending = world.call("send", channel="general", content="hello")
    for part in pieces(body, 1 + 16 * size):
        world.event(DaemonData(part))
    world.answers["send"] = {"message_id": "m", "seq": 1, "sent_at": "x", "duplicate": False}
    world.pass_time(45.0)
    for call in (waiting, sending):
        assert world.result(call) is not None
    world.event(StdinClosed())
    world.pass_time(LEAVE_SECONDS)
    assert world.exit_code == 0


# files that others write


def settings(data: bytes) -> None:
    """A configuration and a repository's file: taken, or refused with the reason."""
    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as directory:
        for name in ("config.json", PROJECT_FILE):
            Path(directory, name).write_bytes(data)
        with suppress(ConfigInvalid):
            found = load(Path(directory, "config.json")).settings
            assert len(found.fingerprint()) == 32
        project = find_project(directory)
        assert project.root == directory
        if project.problem is not None:
            assert "\n" not in project.problem.line


# texts that people and models type


def query(data: bytes) -> None:
    """A query is never an error of syntax, and finds in SQLite what it means."""
    asked, _, text = data.partition(b"\n")
    typed, body = _text(asked), _text(text)
    try:
        found = parse(typed)
    except InvalidArgument:
        assert len(asked) > 4096
        return
    assert not (found.nothing and (found.wanted or found.unwanted))
    request = build(typed, SearchFilter(), "newest", 10, None, 1000, {}, "bus")
    assert found.nothing or _matches(expression(request), body) == finds(found, body)


def _matches(match: str, body: str) -> bool:
    document = normalise.text(body)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(
            "CREATE VIRTUAL TABLE t USING fts5(words, parts, marks, content='', tokenize='ascii')"
        )
        row = (document.words, document.parts, EVERY)
        database.execute("INSERT INTO t (rowid, words, parts, marks) VALUES (1, ?, ?, ?)", row)
        found = database.execute("SELECT rowid FROM t WHERE t MATCH ?", (match,)).fetchall()
    return bool(found)


def cursor(data: bytes) -> None:
    """Where a search goes on, and between which times: sound, or said to be not."""
    first, _, rest = data.partition(b"\n")
    since, _, until = rest.partition(b"\n")
    filters = SearchFilter(since=_text(since) or None, until=_text(until) or None)
    with suppress(AgentbusError):
        build("", filters, "newest", 10, _text(first), 1000, {}, "bus")


def names(data: bytes) -> None:
    """Whatever a harness calls itself or a task becomes a name; a name stays one line, and a new
    one is all that is seen of it."""
    text = _text(data)
    with suppress(InvalidArgument):
        check_name(text, "channel")
        assert len(text.splitlines()) == 1
        assert len(text.encode()) <= NAME_BYTES
    with suppress(InvalidArgument):
        check_new_name(text, "channel")
        check_name(text, "channel")
        assert one_line(text) == text
    made = one_line(text)
    assert one_line(made) == made
    check_new_name(made or "x", "hint")
    check_new_name(base_name("Sam", "child", text), "display name")
    check_name(application_of(text), "application")


def _text(data: bytes) -> str:
    """As JSON gives texts: whole characters, whatever they are."""
    return data.decode("utf-8", "replace")


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (frames, lines, rpc, replies, mcp, daemon, settings, query, cursor, names)
}
