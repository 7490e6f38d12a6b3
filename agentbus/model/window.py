"""The room of an adapter for messages that it has not handed off yet."""

from __future__ import annotations


class Window:
    """How much an adapter may hold that it has not handed off; shared by its attachments."""

    __slots__ = ("bytes", "max_bytes", "max_messages", "messages")

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.max_messages = max_messages
        self.max_bytes = max_bytes
        self.messages = 0
        self.bytes = 0

    def admits(self, messages: int, size: int) -> bool:
        """Whether so much more fits."""
        return self.messages + messages <= self.max_messages and self.bytes + size <= self.max_bytes


class Share:
    """What one attachment has in the window.

    An attachment with nothing in it may always put one message there: otherwise a message larger
    than the window would never come, and an attachment that never receives would starve the others
    of its connection.
    """

    __slots__ = ("bytes", "messages", "window")

    def __init__(self, window: Window) -> None:
        self.window = window
        self.messages = 0
        self.bytes = 0

    def admits(self, size: int) -> bool:
        """Whether one more message of this size fits."""
        return not self.messages or self.window.admits(1, size)

    def charge(self, messages: int, size: int) -> None:
        """Takes room."""
        self.messages += messages
        self.bytes += size
        self.window.messages += messages
        self.window.bytes += size

    def free(self, messages: int, size: int) -> None:
        """Gives it back."""
        self.charge(-messages, -size)
