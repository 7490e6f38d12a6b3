"""Ids of operations, fixed before they are submitted for the first time.

They begin with the time, since the bus keeps an index of them: ids that are in order are appended
to it, others are scattered over all of its pages.
"""

from __future__ import annotations

from typing import Final

from agentbus.model.ports import Instant, Tokens

TIME_DIGITS: Final = 12
"""Hexadecimal digits of milliseconds since 1970; enough until the year 10889."""


def operation_id(now: Instant, tokens: Tokens) -> str:
    """A fresh id: the time, then what makes it unique (80 random bits of a real token)."""
    milliseconds = max(0, int(now.wall * 1000))
    return f"{milliseconds:0{TIME_DIGITS}x}{tokens.token()[TIME_DIGITS:]}"
