"""The bare processes of `hops.py`: `python -m bench.hop ROLE ARGUMENT...`, sockets by their number.

    gateway SENDER WRITER [PROJECTOR RECEIVER]    lines to the writer, and answers back
    writer GATEWAY DIRECTORY SYNCHRONOUS [PROJECTOR]    a commit for each line
    projector WRITER GATEWAY REDIS                an XADD for each line
    adapter GATEWAY                               between stdin and stdout, and the gateway
    work SENDER SERVER MICROSECONDS TOGETHER      so much processor time for each line, and so many
                                                  are passed on together

Nothing is parsed, checked or kept; each is ready once it has said so.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import hiredis
import uvloop

from bench.bare import Bare
from bench.load import CHANNEL
from bench.relay import between

CHUNK: Final = 1 << 18
CONTENT_BYTES: Final = 1024
ANSWER: Final = b'{"jsonrpc":"2.0","id":1,"result":{"message_id":"bare-1","seq":1}}\n'

Loop = asyncio.AbstractEventLoop


def _lines(loop: Loop, source: socket.socket, action: Callable[[bytes], object]) -> None:
    """Has whole lines dealt with; the loop ends with the other end."""
    held = bytearray()

    def readable() -> None:
        data = source.recv(CHUNK)
        held.extend(data)
        if not data:
            loop.stop()
        elif data.endswith(b"\n"):
            action(bytes(held))
            held.clear()

    loop.add_reader(source.fileno(), readable)


def _gateway(loop: Loop, sender: str, writer: str, *others: str) -> None:
    asks, commits = _socket(sender), _socket(writer)
    _lines(loop, asks, commits.sendall)
    _lines(loop, commits, asks.sendall)
    if others:
        projector, receiver = map(_socket, others)
        _lines(loop, projector, receiver.sendall)


def _writer(loop: Loop, gateway: str, directory: str, synchronous: Any, *others: str) -> None:
    """The next rows are made while nobody waits, as the bare loop makes them before its clock."""
    bare = Bare(directory, CONTENT_BYTES, 1, synchronous)
    answers = _socket(gateway)
    projectors = [_socket(each) for each in others]
    commit = bare.prepare(1)

    def accept(line: bytes) -> None:
        nonlocal commit
        commit()
        answers.sendall(ANSWER)
        for projector in projectors:
            projector.sendall(line)
        commit = bare.prepare(1)

    _lines(loop, answers, accept)


def _projector(loop: Loop, writer: str, gateway: str, path: str) -> None:
    redis = socket.socket(socket.AF_UNIX)
    redis.connect(path)
    visible = _socket(gateway)
    reader = hiredis.Reader()
    waiting: list[bytes] = []

    def add(line: bytes) -> None:
        waiting.append(line)
        command = (b"XADD", CHANNEL, b"*", b"e", line)
        redis.sendall(hiredis.pack_command(command))

    def added() -> None:
        reader.feed(redis.recv(CHUNK))
        while (reply := reader.gets()) is not False:
            if isinstance(reply, Exception):
                raise reply
            visible.sendall(waiting.pop(0))

    _lines(loop, _socket(writer), add)
    loop.add_reader(redis.fileno(), added)


def _work(loop: Loop, sender: str, server: str, microseconds: str, together: str) -> None:
    asks, answers = _socket(sender), _socket(server)
    each, at_once = float(microseconds) / 1e6, int(together)

    def work(lines: bytes) -> None:
        each_line = lines.splitlines(keepends=True)
        for start in range(0, len(each_line), at_once):
            some = each_line[start : start + at_once]
            until = time.process_time() + len(some) * each
            while time.process_time() < until:
                pass
            answers.sendall(b"".join(some))

    _lines(loop, asks, work)
    _lines(loop, answers, asks.sendall)


ROLES: Final[dict[str, Callable[..., None]]] = {
    "gateway": _gateway,
    "writer": _writer,
    "projector": _projector,
    "work": _work,
}


def _socket(number: str) -> socket.socket:
    return socket.socket(fileno=int(number))


def main(role: str, *arguments: str) -> None:
    """Until the other end of a socket is closed."""
    if role == "adapter":
        between(_socket(*arguments))
        return
    loop = uvloop.new_event_loop()
    ROLES[role](loop, *arguments)
    print("ready", flush=True)
    loop.run_forever()
    loop.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
