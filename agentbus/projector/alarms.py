"""Several named deadlines over the one timer that a shell gives its core."""

from __future__ import annotations


class Alarms:
    """Times are monotonic; an alarm rings once."""

    def __init__(self) -> None:
        self._set: dict[str, float] = {}
        self._asked: float | None = None
        self._changed = False

    def set(self, name: str, when: float) -> None:
        """Replaces an earlier alarm of this name."""
        self._set[name] = when
        self._changed = True

    def cancel(self, name: str) -> None:
        """Where there is one."""
        self._set.pop(name, None)
        self._changed = True

    def due(self, now: float) -> list[str]:
        """The alarms that ring now, the earliest first; they are gone after this."""
        self._asked, self._changed = None, True
        ringing = sorted((when, name) for name, when in self._set.items() if when <= now)
        for _, name in ringing:
            del self._set[name]
        return [name for _, name in ringing]

    def wake_at(self) -> float | None:
        """When the shell has to wake the core, where it doesn't know yet."""
        if not self._changed:
            return None
        self._changed = False
        first = min(self._set.values(), default=None)
        if first is None or first == self._asked:
            return None
        self._asked = first
        return first
