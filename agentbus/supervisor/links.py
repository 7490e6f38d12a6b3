"""The supervisor's sockets: pairs not yet given away, and the control link to each child."""

from __future__ import annotations

import array
import socket
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from agentbus.errors import InternalError
from agentbus.supervisor.handover import End
from agentbus.wire import framing
from agentbus.wire.links import FromChild, Hand, Listen

BUFFER_BYTES: Final = 256 * 1024
"""Of each end of a link; macOS would give 8 KiB. The kernel may lower it."""

READ_BYTES: Final = 64 * 1024


def make_pair() -> tuple[socket.socket, socket.socket]:
    """Two non-blocking ends with room for a few frames."""
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for end in pair:
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    return pair


class Ends:
    """The ends that the supervisor holds; a pair is made when its first end is asked for."""

    def __init__(self, peers: dict[str, tuple[str, str]]) -> None:
        self._peers = peers
        self._held: dict[End, socket.socket] = {}

    def take(self, end: End) -> socket.socket:
        """An end, to be given away and then closed here."""
        if end not in self._held:
            for owner, sock in zip(self._peers[end.link], make_pair(), strict=True):
                self._held[End(end.link, end.number, owner)] = sock
        return self._held.pop(end)

    def drop(self, end: End) -> None:
        """Closes an end, so that its peer reads the end of file."""
        sock = self._held.pop(end, None)
        if sock is not None:
            sock.close()

    def close(self) -> None:
        """Closes all of them."""
        for sock in self._held.values():
            sock.close()
        self._held.clear()


class Silent(Exception):
    """The child's end is closed, or what comes from it is no message."""


class Control:
    """The supervisor's end of a child's control link; never blocks."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self._decoder: framing.FrameDecoder[FromChild] = framing.FrameDecoder(FromChild)
        self._out: deque[tuple[bytearray, socket.socket | None]] = deque()

    @property
    def waiting(self) -> bool:
        """Whether something is still to be written when the child reads on."""
        return bool(self._out)

    def tell(self, message: msgspec.Struct) -> None:
        """Writes a message, or keeps it until the child reads."""
        self._out.append((framing.encode(message), None))
        self.flush()

    def hand(self, link: str, number: int, end: socket.socket) -> None:
        """Gives the child a new end, with the first byte of its `Hand`; closes it here."""
        self._out.append((framing.encode(Hand(link, number)), end))
        self.flush()

    def listen(self, listening: socket.socket) -> None:
        """Gives the child a copy of the socket that it is to accept from now on."""
        self._out.append((framing.encode(Listen()), listening.dup()))
        self.flush()

    def flush(self) -> None:
        """Writes what the child takes now. A closed one is noticed when reading."""
        while self._out:
            frame, end = self._out[0]
            try:
                written = self._send(frame, end)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._forget()
                return
            if end is not None:
                end.close()
            del frame[:written]
            if frame:
                self._out[0] = (frame, None)
            else:
                self._out.popleft()

    def _send(self, frame: bytearray, end: socket.socket | None) -> int:
        if end is None:
            return self.socket.send(frame)
        rights = array.array("i", [end.fileno()])
        return self.socket.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])

    def read(self) -> Sequence[Any]:
        """The messages that have come. Raises Silent when there will be no more."""
        try:
            data = self.socket.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return ()
        except OSError as error:
            raise Silent from error
        if not data:
            raise Silent
        try:
            return self._decoder.feed(data)
        except InternalError as error:
            raise Silent from error

    def close(self) -> None:
        """Closes the link, which ends the child."""
        self._forget()
        self.socket.close()

    def _forget(self) -> None:
        for _, end in self._out:
            if end is not None:
                end.close()
        self._out.clear()
