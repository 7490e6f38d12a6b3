"""Newline-delimited JSON, as adapters, harnesses and the daemon speak it.

A line ends with LF (a CR before it is dropped) and is at most `ceiling` bytes with its LF. A longer
one is thrown away as it comes, reported once as `Overlong`, and the next line is read as usual.
Empty lines are nothing.
"""

from __future__ import annotations

from io import BytesIO

import msgspec


class Overlong(msgspec.Struct, frozen=True):
    """A line that passed the ceiling; `head` and `tail` are its beginning and its end, to find whom
    to answer: some write the id first, some last."""

    ceiling: int
    head: bytes
    tail: bytes = b""


HEAD = 4096
"""Bytes of an overlong line that are kept, of its beginning as of its end."""


class LineDecoder:
    """Cuts the byte stream of one connection into lines; keep one per connection."""

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self._held = bytearray()
        """The beginning of a line; one buffer, since it may come a byte at a time."""
        self._head = b""
        self._tail = b""
        self._skipping = False

    @property
    def pending(self) -> int:
        """Bytes of a line that has not ended."""
        return len(self._held)

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """The lines completed by `data`, without their line ends."""
        lines: list[bytes | Overlong] = []
        if self._held or self._skipping:
            part, end, data = data.partition(b"\n")
            self._hold(part)
            if not end:
                return lines
            lines += self._ended()
        data = data.lstrip(b"\n")  # many empty lines cost nothing
        parts = BytesIO(data).readlines()  # what split does, several times faster
        rest = parts.pop() if parts and not parts[-1].endswith(b"\n") else b""
        if len(data) > self._ceiling or b"\r" in data:
            for part in parts:
                self._hold(part[:-1])
                lines += self._ended()
        else:
            for part in parts:
                line = part.strip(b" \t\n")
                if line:
                    lines.append(line)
        if rest:
            self._hold(rest)
        return lines

    def _hold(self, part: bytes) -> None:
        if self._skipping:
            self._tail = (self._tail + part[-HEAD:])[-HEAD:]
            return
        self._held += part
        if len(self._held) >= self._ceiling:
            self._head, self._tail = bytes(self._held[:HEAD]), bytes(self._held[-HEAD:])
            self._held = bytearray()
            self._skipping = True

    def _ended(self) -> list[bytes | Overlong]:
        """What was held, which has ended; nothing where it was empty."""
        if self._skipping:
            self._skipping = False
            return [Overlong(self._ceiling, self._head, self._tail)]
        line, self._held = bytes(self._held), bytearray()
        line = line.removesuffix(b"\r").strip(b" \t")
        return [line] if line else []
