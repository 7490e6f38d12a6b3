"""Why the last daemon ended, where it did not end in order: read from the supervisor's log, for
people who find that nothing runs."""

from __future__ import annotations

import json
import os
import re
from typing import Final

STARTS: Final = "daemon_starts"
FAILED: Final = "daemon_failed"
TAIL_BYTES: Final = 64 * 1024

_LINE: Final = re.compile(rf"\baction=(?:{STARTS}\b|{FAILED} code=(\w+) text=(.*))")


def last_failure(log: str) -> str | None:
    """Code and reason; None where the last daemon of this log has not failed, or none has run."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return None
    found = next(filter(None, map(_LINE.search, reversed(lines))), None)
    if found is None or found[1] is None:
        return None
    return f"{found[1]}: {_text(found[2])}"


def _text(field: str) -> str:
    """As `logs` has written it: a JSON string unless it is plain."""
    try:
        return str(json.loads(field)) if field.startswith('"') else field
    except ValueError:
        return field
