"""The adapters' sockets, and the listening one.

Read and written directly instead of through asyncio's transports: a transport whose write fails
closes at once, and what the adapter had reported before it died would be lost. Here only the end
of what it wrote closes a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import socket
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from agentbus.gateway.holdings import Holdings
from agentbus.runtime import logs, platform
from agentbus.wire.lines import LineDecoder, Overlong
from agentbus.wire.rpc import MAX_LINE

READ_BYTES: Final = 256 * 1024
READS_PER_TURN: Final = 2
"""A peer that writes without end must not starve the others."""

PIECES: Final = 512
"""Pieces of lines in one write; no system takes fewer than 1024."""

JOINED_BYTES: Final = 16 * 1024
"""So little is joined before it is written, since that costs less than many pieces do."""

ACCEPTS_PER_TURN: Final = 64
EXHAUSTED_SECONDS: Final = 0.1

_FULL: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_log = logs.get(__name__)

OnLines = Callable[[int, list[bytes | Overlong]], None]
OnEnd = Callable[[int], None]

_buffer: Final = bytearray(READ_BYTES)
"""Whatever is read is copied out of it at once."""

_view: Final = memoryview(_buffer)


class AdapterSocket:
    """One connection. `on_end` is called once, after the last line, unless `close` was called.

    A peer that leaves more than `bound` bytes unread is cut off, and one that holds most of all
    where `holdings` are too much.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        identity: int,
        bound: int,
        holdings: Holdings,
        on_lines: OnLines,
        on_end: OnEnd,
    ) -> None:
        self.id = identity
        self._loop = loop
        self._socket = sock
        self._bound = bound
        self._holdings = holdings
        self._held = 0
        self._on_lines = on_lines
        self._on_end = on_end
        self._decoder = LineDecoder(MAX_LINE)
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._out: deque[bytes | memoryview] = deque()
        self._unread = 0
        self._watching = False
        self._peer_reads = True
        self._ending = False
        self._closed = False
        self._cut = False

    def open(self) -> None:
        """Begins to read."""
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._readable)

    # ---- out

    def send(self, lines: Sequence[bytes]) -> None:
        """Queues lines, or pieces of lines, for `flush`."""
        if self._peer_reads and not self._closed:
            self._out += lines
            self._unread += sum(map(len, lines))

    def flush(self) -> None:
        """Writes what the socket takes now; the rest follows by itself."""
        while self._out and not self._closed:
            try:
                written = self._write()
            except (BlockingIOError, InterruptedError):
                written = 0
            except OSError:  # nobody reads any more; what was written is still to be read
                self._forget_output()
                break
            if self._took(written):
                self._stuck()
                return
        self._unwatch()
        if self._ending:
            self.close()

    def _write(self) -> int:
        """Writes the next pieces; the bytes that were taken of them."""
        out = self._out
        if len(out) == 1:
            return self._socket.send(out[0])
        if self._unread <= JOINED_BYTES and len(out) <= PIECES:
            return self._socket.send(b"".join(out))
        return self._socket.sendmsg(list(islice(out, PIECES)))

    def _took(self, written: int) -> bool:
        """So many bytes are written; whether the socket is full."""
        out, left = self._out, written
        self._unread -= written
        if not self._unread:
            out.clear()
            return False
        offered = min(len(out), PIECES)  # at least: joined ones may be more
        while len(out[0]) <= left:
            left -= len(out.popleft())
            offered -= 1
        if left:
            out[0] = memoryview(out[0])[left:]
        return offered > 0

    def _stuck(self) -> None:
        if self._unread > self._bound:
            self.cut_off()
            return
        if not self._watching:
            self._watching = True
            self._loop.add_writer(self._socket, self.flush)
        self._hold()

    def cut_off(self) -> None:
        """Ends a connection that costs too much."""
        if self._cut:
            return
        self._cut = True
        _log.warn("cut_off", connection=self.id, unread=self._unread, held=self._decoder.pending)
        self._forget_output()
        self._readable()  # what it has reported still counts
        self._end()

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_writer(self._socket)
            self._hold()

    def _hold(self) -> None:
        """Tells what it costs, where that has changed."""
        held = 0 if self._closed or self._cut else self._unread + self._decoder.pending
        if held != self._held:
            self._held = held
            self._holdings.hold(self, held)

    def _forget_output(self) -> None:
        self._peer_reads = False
        self._out.clear()
        self._unread = 0

    @property
    def unread(self) -> int:
        """Bytes that wait for the peer to read."""
        return 0 if self._closed else self._unread

    # ---- ends

    def close_when_written(self) -> None:
        """Closes it, once what was sent has been written."""
        self._ending = True
        self.flush()

    def close(self) -> None:
        """Closes it now, without `on_end`."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._forget_output()
        self._hold()

    def _end(self) -> None:
        if not self._closed:
            self.close()
            self._on_end(self.id)

    # ---- in

    def _readable(self) -> None:
        # Until nothing is left: libuv reports a peer that died with unread data exactly once.
        # Looking is cheaper than reading nothing, which raises an error.
        for turn in range(READS_PER_TURN):
            if self._closed or (turn and not self._poll.poll(0)):
                return
            try:
                count = self._socket.recv_into(_buffer)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                count = 0
            if not count:
                self._end()
                return
            lines = self._decoder.feed(bytes(_view[:count]))
            if lines:
                self._on_lines(self.id, lines)
            self._hold()
        self._loop.call_soon(self._readable)


class Acceptor:
    """Takes connections from the listening socket; without descriptors it refuses them cleanly."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: socket.socket,
        on_socket: Callable[[socket.socket, bool], None],
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._on_socket = on_socket
        self._reserve: int | None = None
        """A descriptor to give up, so that a connection can be accepted and closed."""
        self._closed = False
        self._exhausted = False

    def open(self) -> None:
        """Begins to accept."""
        self._listener.setblocking(False)
        self._take_reserve()
        self._loop.add_reader(self._listener, self._acceptable)

    def close(self) -> None:
        """Accepts no more; the socket itself is the supervisor's and stays."""
        self._closed = True
        self._loop.remove_reader(self._listener)
        self._give_reserve()

    def use(self, listener: socket.socket) -> None:
        """Accepts from another socket from now on; who has reached the old one is taken still."""
        self._loop.remove_reader(self._listener)
        self._acceptable()
        self._loop.remove_reader(self._listener)  # which a lack of descriptors puts back later
        self._listener.close()
        self._listener = listener
        listener.setblocking(False)
        if not self._closed:
            self._loop.add_reader(listener, self._acceptable)

    def _acceptable(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                sock, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:
                self._failed(error)
                return
            self._exhausted = False
            self._on_socket(sock, _is_ours(sock))

    def _failed(self, error: OSError) -> None:
        if error.errno not in _FULL:
            raise error
        if not self._exhausted:
            self._exhausted = True
            _log.error("descriptors_exhausted", text=str(error))
        if self._reserve is None:  # not even refusing is possible: wait instead of spinning
            self._loop.remove_reader(self._listener)
            self._loop.call_later(EXHAUSTED_SECONDS, self._resume)
            return
        self._give_reserve()
        with contextlib.suppress(OSError):
            self._listener.accept()[0].close()
        self._take_reserve()

    def _resume(self) -> None:
        if not self._closed:
            self._take_reserve()
            self._loop.add_reader(self._listener, self._acceptable)

    def _take_reserve(self) -> None:
        with contextlib.suppress(OSError):
            self._reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _give_reserve(self) -> None:
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None


def _is_ours(sock: socket.socket) -> bool:
    try:
        return platform.peer_uid(sock) == os.geteuid()
    except OSError:
        return False
