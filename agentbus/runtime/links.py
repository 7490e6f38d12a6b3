"""One process' ends of the daemon's pipes, on an event loop.

A link is never paused and never blocks: processes that stop reading because they cannot write
deadlock in a triangle. What does not fit into the socket waits in memory, and what bounds that is
the gateway's credit.

Sockets are read directly instead of through a transport, for two reasons. A transport whose write
fails closes at once and loses what the peer wrote before it died; here only end of file closes a
link. And no transport hands out descriptors.

libuv reports a peer that died with unread data exactly once. Who reads less than there is then
would wait for ever, so a link whose peer is known to be gone is read to its end without waiting for
reports; the others save the system call that finds nothing.
"""

from __future__ import annotations

import array
import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentbus.errors import InternalError
from agentbus.wire import framing

READ_BYTES: Final = 256 * 1024
READS_PER_TURN: Final = 8
"""A peer that writes without end must not starve the other links."""

_DESCRIPTORS: Final = 8
_FD_BYTES: Final = array.array("i").itemsize

OnMessages = Callable[[list[Any]], None]
OnEnd = Callable[[], None]
OnError = Callable[[Exception], None]


class Link:
    """One end of a link.

    `on_messages` gets what has arrived whole. `on_end` is called once, after the last message that
    the peer wrote. `on_error` gets what `on_messages` raised, or the InternalError of bytes that
    are no frame; nothing is read after that.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        union: Any,
        on_messages: OnMessages,
        on_end: OnEnd,
        on_error: OnError,
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._decoder: framing.FrameDecoder[Any] = framing.FrameDecoder(union)
        self._on_messages = on_messages
        self._on_end = on_end
        self._on_error = on_error
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._frames = framing.FrameWriter()
        self._out = self._frames.buffer
        self._writing = False
        self._peer_reads = True
        self._thorough = False
        self._drained: asyncio.Future[None] | None = None
        self.closed = False

    def open(self) -> None:
        """Begins to read."""
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._readable)

    def send(self, message: msgspec.Struct) -> None:
        """Queues a message for `flush`; drops it where the peer is gone.

        Raises InternalError where the message is too large for a frame.
        """
        if self._peer_reads and not self.closed:
            self._frames.add(message)

    def flush(self) -> None:
        """Writes what the socket takes now; the rest follows by itself."""
        self._frames.close()
        while self._out:
            try:
                written = self._socket.send(self._out)
            except (BlockingIOError, InterruptedError):
                self._watch()
                return
            except OSError:  # the peer is gone; what it wrote is still to be read
                self._peer_reads = False
                self._frames.clear()
                self.read_out()
                break
            del self._out[:written]
        self._unwatch()
        self._wake_drained()

    async def drained(self) -> None:
        """Returns when everything queued is written, or never will be."""
        self.flush()
        if self._out and not self.closed:
            self._drained = self._loop.create_future()
            await self._drained

    def read_out(self) -> None:
        """The peer is known to be gone: reads what is left of it, and ends."""
        if not self._thorough and not self.closed:
            self._thorough = True
            self._loop.call_soon(self._readable)

    def close(self) -> None:
        """Gives the socket up without reading on; `on_end` is not called."""
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._frames.clear()
        self._wake_drained()

    def _receive(self) -> memoryview:
        """What can be read now, empty at the end of file. Raises BlockingIOError or OSError."""
        return self._buffer[: self._socket.recv_into(self._buffer)]

    def _readable(self) -> None:
        for _ in range(READS_PER_TURN):
            if self.closed:
                return
            try:
                data = self._receive()
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._end()
                return
            if not data:
                self._end()
                return
            try:
                self._on_messages(self._decoder.feed(data))
            except Exception as error:  # noqa: BLE001 - it is the process' to judge
                self.close()
                self._on_error(error)
            if len(data) < READ_BYTES and not self._thorough:
                return
        self._loop.call_soon(self._readable)

    def _end(self) -> None:
        self.close()
        self._on_end()

    def _watch(self) -> None:
        if not self._writing:
            self._writing = True
            self._loop.add_writer(self._socket, self.flush)

    def _unwatch(self) -> None:
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._socket)

    def _wake_drained(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)


class ControlLink(Link):
    """The link to the supervisor, which also carries descriptors (`SCM_RIGHTS`)."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        union: Any,
        on_messages: OnMessages,
        on_end: OnEnd,
        on_error: OnError,
    ) -> None:
        super().__init__(loop, sock, union, on_messages, on_end, on_error)
        self._descriptors: list[int] = []
        self._thorough = True

    def take_socket(self) -> socket.socket:
        """The socket that came with the frame being handled; the supervisor sends one at a time.

        Raises InternalError where none came (the process is out of descriptors).
        """
        if not self._descriptors:
            raise InternalError("a link was announced, but no descriptor came with it")
        return socket.socket(fileno=self._descriptors.pop(0))

    def _receive(self) -> memoryview:  # type: ignore[explicit-override]
        data, ancillary, _, _ = self._socket.recvmsg(
            READ_BYTES, socket.CMSG_SPACE(_DESCRIPTORS * _FD_BYTES)
        )
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._keep(content)
        return memoryview(data)

    def _keep(self, content: bytes) -> None:
        descriptors = array.array("i")
        descriptors.frombytes(content[: len(content) - len(content) % _FD_BYTES])
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
            self._descriptors.append(descriptor)
