"""What a person has chosen to see: a state machine of keys, without a terminal.

key            while looking                     while typing a filter
-------------  --------------------------------  ---------------------------
q, Ctrl-C      end                               Ctrl-C: end; q: a letter
Tab            the next section has the focus    -
s              it is sorted by the next column   a letter
/              a filter is typed                 a letter
Escape         no filter                         no filter, and looking again
Enter          -                                 looking again
up, down,      one line, or ten                  -
page keys
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec


class Section(Enum):
    """The tables that may have the focus, with what each can be sorted by, its own order first."""

    SESSIONS = "sessions"
    CHANNELS = "channels"
    PROCESSES = "processes"


SORTS: Final = {
    Section.SESSIONS: ("waiting", "name", "held"),
    Section.CHANNELS: ("name", "messages", "subscribers"),
    Section.PROCESSES: ("start", "cpu", "memory"),
}
PAGE: Final = 10
MOST_TYPED: Final = 64
MOVES: Final = {"up": -1, "down": 1, "page up": -PAGE, "page down": PAGE, "home": -(10**6)}


class View(msgspec.Struct):
    """`scroll` counts the lines of the focused section that are above what is seen."""

    focus: Section = Section.SESSIONS
    sorts: dict[Section, int] = msgspec.field(default_factory=lambda: dict.fromkeys(Section, 0))
    filter: str = ""
    typing: bool = False
    scroll: int = 0
    ended: bool = False

    def sort(self, section: Section) -> str:
        """By what it is sorted."""
        return SORTS[section][self.sorts[section]]

    def press(self, key: str) -> None:
        """One key: a printable character, or the name of another one."""
        if key == "ctrl-c":
            self.ended = True
        elif self.typing:
            self._type(key)
        else:
            self._look(key)

    def _type(self, key: str) -> None:
        if key == "enter":
            self.typing = False
        elif key == "escape":
            self.typing, self.filter = False, ""
        elif key == "backspace":
            self.filter = self.filter[:-1]
        elif len(key) == 1 and len(self.filter) < MOST_TYPED:
            self.filter += key
        self.scroll = 0

    def _look(self, key: str) -> None:
        match key:
            case "q":
                self.ended = True
            case "tab":
                order = list(Section)
                self.focus = order[(order.index(self.focus) + 1) % len(order)]
                self.scroll = 0
            case "s":
                self.sorts[self.focus] = (self.sorts[self.focus] + 1) % len(SORTS[self.focus])
                self.scroll = 0
            case "/":
                self.typing, self.filter = True, ""
            case "escape":
                self.filter = ""
            case _ if key in MOVES:
                self.scroll = max(0, self.scroll + MOVES[key])
            case _:
                pass

    def wants(self, *names: str) -> bool:
        """Whether the filter lets a line through, by any of its names; case does not matter."""
        wanted = self.filter.casefold()
        return not wanted or any(wanted in name.casefold() for name in names)
