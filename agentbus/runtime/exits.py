"""Exit codes with names. Those of commands are contract; those of children are the daemon's own."""

from __future__ import annotations

from typing import Final

OK: Final = 0
"""Done, stopped in order, or (commands) ready."""

FAILED: Final = 1
"""One line on stderr says what happened."""

USAGE: Final = 2
"""The command line was wrong."""

NOT_RUNNING: Final = 3
"""`status`: there is no daemon."""

NOT_READY: Final = 4
"""`status`: the daemon runs, but does not take messages."""

TIMED_OUT: Final = 5
"""`wait`: nothing came."""

CRASHED: Final = 70
"""A child met an error nobody had foreseen; its log has the traceback. (EX_SOFTWARE)"""

ORPHANED: Final = 75
"""A child's supervisor is gone. (EX_TEMPFAIL)"""

FAILING: Final = 78
"""A child has told the supervisor, by `Failing`, why restarting it will not help. (EX_CONFIG)"""
