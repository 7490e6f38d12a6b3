"""Between a harness and its MCP server: hands lines on, and keeps them.

    python tap.py FILE COMMAND [ARGUMENT...]

FILE gets a JSON line for the server's environment, then one for each line that passes: `from` says
who wrote it (`harness`, `server`). Standard library only, and out of the way: standard error and
signals are the server's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from typing import IO, Any

TOLD = ("CLAUDE_CODE_SESSION_ID",)
"""Variables by which a harness tells who it is."""


class _Log:
    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write(self, **entry: Any) -> None:
        with self._lock, open(self._path, "a") as file:
            file.write(json.dumps(entry) + "\n")


def _pass_on_caller() -> None:
    """What a session hook left for the child of the harness is for the child of this one."""
    callers = os.path.join(os.environ.get("AGENTBUS_RUNTIME_DIR", ""), "callers")
    with contextlib.suppress(FileNotFoundError):
        shutil.copy(
            os.path.join(callers, str(os.getppid())), os.path.join(callers, str(os.getpid()))
        )


def _hand_on(source: IO[bytes], target: IO[bytes], log: _Log, name: str) -> None:
    """Until either side ends; the end is handed on too."""
    try:
        for line in source:
            _pass_on_caller()
            log.write(**{"from": name, "message": json.loads(line)})
            target.write(line)
            target.flush()
        target.close()
    except BrokenPipeError:
        pass


def main(path: str, *command: str) -> int:
    """The server's exit code."""
    log = _Log(path)
    log.write(environment={name: os.environ[name] for name in TOLD if name in os.environ})
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: server.send_signal(number))
    asks = (sys.stdin.buffer, server.stdin, log, "harness")
    threading.Thread(target=_hand_on, args=asks, daemon=True).start()
    _hand_on(server.stdout, sys.stdout.buffer, log, "server")
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
