"""Who is behind a call that is to come, as a hook of the harness said.

Claude Code calls `bind_caller` on this very process 2 to 90 ms before the call that it belongs to;
they are joined by the id of the tool use. In between the user may be asked for permission, so that
a call can come long after.
"""

from __future__ import annotations

from typing import Final

import msgspec

TOOL_USE: Final = "claudecode/toolUseId"
"""The key in a call's `_meta`."""

LIFE_SECONDS: Final = 3600.0
MAX_BINDINGS: Final = 256


class Thread(msgspec.Struct, frozen=True):
    """A conversation: its root, and where it is a subagent's, which and what for."""

    root: str
    child: str | None = None
    role: str | None = None


class _Binding(msgspec.Struct, frozen=True):
    thread: Thread
    until: float


class Bindings:
    """The latest ones, by the id of the tool use. A call that is made twice finds its own twice."""

    def __init__(self) -> None:
        self._bindings: dict[str, _Binding] = {}

    def __len__(self) -> int:
        return len(self._bindings)

    def add(self, tool_use: str, thread: Thread, now: float) -> None:
        """The call with this id will be this thread's."""
        self._bindings.pop(tool_use, None)
        self._bindings[tool_use] = _Binding(thread, now + LIFE_SECONDS)
        self._forget(now)

    def find(self, tool_use: object, now: float) -> Thread | None:
        """Whose the call is, where that was said and not too long ago."""
        found = self._bindings.get(tool_use) if isinstance(tool_use, str) else None
        return found.thread if found is not None and now < found.until else None

    def _forget(self, now: float) -> None:
        """The oldest come first."""
        for tool_use, binding in list(self._bindings.items()):
            if now < binding.until and len(self._bindings) <= MAX_BINDINGS:
                break
            del self._bindings[tool_use]
