"""Lines that wait for a descriptor that does not block."""

from __future__ import annotations

import os
from collections import deque

from agentbus.adapter.events import Flushed, StdoutBroken, Withdrawn


class Output:
    """Writes lines in their order, as far as the reader lets it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lines: deque[tuple[memoryview, int]] = deque()
        self._begun = False
        """Whether bytes of the first line are out."""
        self.waiting = 0
        """Bytes that are not."""

    def add(self, data: bytes, token: int) -> None:
        """One more line."""
        self._lines.append((memoryview(data), token))
        self.waiting += len(data)

    def write(self) -> list[Flushed | StdoutBroken]:
        """Writes what can be written; tells of lines that are out, or that no more will be."""
        events: list[Flushed | StdoutBroken] = []
        while self._lines:
            view, token = self._lines[0]
            try:
                written = os.write(self._fd, view)
            except BlockingIOError:
                break
            except OSError:
                self._lines.clear()
                self.waiting = 0
                return [*events, StdoutBroken()]
            self.waiting -= written
            self._begun = written < len(view)
            if self._begun:
                self._lines[0] = (view[written:], token)
            else:
                self._lines.popleft()
                events.append(Flushed(token))
        return events

    def withdraw(self, token: int) -> list[Withdrawn]:
        """Takes a line back of which no byte is out; nothing where that is too late."""
        for index, (view, each) in enumerate(self._lines):
            if each == token and (index > 0 or not self._begun):
                self.waiting -= len(view)
                del self._lines[index]
                return [Withdrawn(token)]
        return []
