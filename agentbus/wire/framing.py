"""Frames on the pipes between the daemon's processes.

    +----------------+------------------------------------+
    | length, 4 bytes| body, `length` bytes               |
    | big-endian     | msgpack, an array of tagged arrays |
    +----------------+------------------------------------+

A body holds messages, in order, of the closed union of its link and direction (`wire.links`): what
one turn of the sender wrote shares a frame, up to about `ENOUGH` bytes, as reading many at once
takes half the time. A message of more than `MAX_BODY` bytes is a fault of the sending process.
"""

from __future__ import annotations

import struct
from typing import Final, Generic, TypeVar

import msgspec

from agentbus.errors import InternalError

T = TypeVar("T")

HEADER: Final = 4
MAX_BODY: Final = 16 * 1024 * 1024

ENOUGH: Final = 64 * 1024
"""Bytes from which on a frame takes no more messages: its reader begins while the next is made."""

_HEAD: Final = struct.Struct(">IBI")
_ARRAY: Final = 0xDD  # msgpack's array with 32 bits for its length
_EMPTY: Final = bytes(_HEAD.size)
_MAX_ANNOUNCED: Final = MAX_BODY + ENOUGH + _HEAD.size
_LENGTH: Final = struct.Struct(">I")

_encode_into: Final = msgspec.msgpack.Encoder().encode_into


class FrameWriter:
    """Gathers messages into frames, in one buffer; who writes takes from its beginning.

    Close the last frame before anything is taken.
    """

    def __init__(self) -> None:
        self.buffer = bytearray()
        self._start = 0
        self._count = 0

    def add(self, message: msgspec.Struct) -> None:
        """One more message; it is left out where it passes `MAX_BODY`: raises InternalError."""
        buffer = self.buffer
        place = len(buffer)
        if not self._count:
            self._start = place
            buffer += _EMPTY
        try:
            begun = len(buffer)
            _encode_into(message, buffer, -1)
            _check(message, len(buffer) - begun)
        except BaseException:
            del buffer[place:]
            raise
        self._count += 1
        if len(buffer) - self._start >= ENOUGH:
            self.close()

    def close(self) -> None:
        """Completes the frame that is open, if one is."""
        if self._count:
            length = len(self.buffer) - self._start - HEADER
            _HEAD.pack_into(self.buffer, self._start, length, _ARRAY, self._count)
            self._count = 0

    def clear(self) -> None:
        """Throws away all of it, with the frame that is open."""
        self.buffer.clear()
        self._count = 0


def encode(message: msgspec.Struct) -> bytearray:
    """One whole frame with one message. Raises InternalError where that passes `MAX_BODY`."""
    writer = FrameWriter()
    writer.add(message)
    writer.close()
    return writer.buffer


def _check(message: msgspec.Struct, size: int) -> None:
    if size > MAX_BODY:
        kind = type(message).__name__
        raise InternalError(f"a {kind} message of {size} bytes passes the limit of {MAX_BODY}")


class FrameDecoder(Generic[T]):
    """Turns the byte stream of one link and direction into messages.

    Keep one for as long as the socket lives: a partial frame waits in it.
    """

    def __init__(self, union: type[T] | object) -> None:
        kind: object = list[union]  # type: ignore[valid-type]
        self._decoder: msgspec.msgpack.Decoder[list[T]] = msgspec.msgpack.Decoder(kind)
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> list[T]:
        """The messages completed by `data`. Raises InternalError on bytes that are no frame."""
        buffer = self._buffer
        if not buffer:
            messages, read = self._whole(data)
            buffer += memoryview(data)[read:]
            return messages
        buffer += data
        messages, read = self._whole(buffer)
        del buffer[:read]
        return messages

    def _whole(self, data: bytes | bytearray | memoryview) -> tuple[list[T], int]:
        """What the frames that are whole hold, and where they end."""
        messages: list[T] = []
        start, end = 0, len(data)
        with memoryview(data) as view:
            while end - start >= HEADER:
                (length,) = _LENGTH.unpack_from(view, start)
                if length > _MAX_ANNOUNCED:
                    raise InternalError(
                        f"a frame announces {length} bytes, the limit is {_MAX_ANNOUNCED}"
                    )
                stop = start + HEADER + length
                if stop > end:
                    break
                messages += self._decode(view[start + HEADER : stop])
                start = stop
        return messages, start

    def _decode(self, body: memoryview) -> list[T]:
        try:
            return self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise InternalError(f"a frame of {len(body)} bytes cannot be read: {error}") from error
