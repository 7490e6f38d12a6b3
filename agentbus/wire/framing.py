"""Frames on the pipes between the daemon's processes.

    +----------------+---------------------------+
    | length, 4 bytes| body, `length` bytes      |
    | big-endian     | msgpack, one tagged array |
    +----------------+---------------------------+

A body is one member of the closed union of its link and direction (`wire.links`).
A body of more than `MAX_BODY` bytes is a fault of the sending process.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec

from agentbus.errors import InternalError

T = TypeVar("T")

HEADER: Final = 4
MAX_BODY: Final = 16 * 1024 * 1024

_encoder = msgspec.msgpack.Encoder()


def encode(message: msgspec.Struct) -> bytearray:
    """One whole frame. Raises InternalError where the body passes `MAX_BODY`."""
    frame = bytearray(HEADER)
    _encoder.encode_into(message, frame, HEADER)
    length = len(frame) - HEADER
    if length > MAX_BODY:
        kind = type(message).__name__
        raise InternalError(f"a {kind} frame of {length} bytes passes the limit of {MAX_BODY}")
    frame[:HEADER] = length.to_bytes(HEADER, "big")
    return frame


class FrameDecoder(Generic[T]):
    """Turns the byte stream of one link and direction into messages.

    Keep one for as long as the socket lives: a partial frame waits in it.
    """

    def __init__(self, union: type[T] | object) -> None:
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(union)
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> list[T]:
        """The messages completed by `data`. Raises InternalError on bytes that are no frame."""
        buffer = self._buffer
        buffer += data
        messages: list[T] = []
        start, end = 0, len(buffer)
        with memoryview(buffer) as view:
            while end - start >= HEADER:
                length = int.from_bytes(view[start : start + HEADER], "big")
                if length > MAX_BODY:
                    raise InternalError(
                        f"a frame announces {length} bytes, the limit is {MAX_BODY}"
                    )
                stop = start + HEADER + length
                if stop > end:
                    break
                messages.append(self._decode(view[start + HEADER : stop]))
                start = stop
        del buffer[:start]
        return messages

    def _decode(self, body: memoryview) -> T:
        try:
            return self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise InternalError(f"a frame of {len(body)} bytes cannot be read: {error}") from error
