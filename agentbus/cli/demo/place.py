"""Where the demo's bus lives: a short temporary directory that nothing outlives."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Self

import msgspec

from agentbus.client import admin
from agentbus.config import Configuration, load
from agentbus.errors import AgentbusError, InternalError, NotRunning
from agentbus.runtime.paths import RUNTIME_VARIABLE


class Place:
    """A configuration, data and a runtime directory of their own, for this process and its
    children, as long as it is entered. On leaving, the bus is stopped and everything removed.

    Under /tmp, whatever TMPDIR says, since a socket's path has room for 103 bytes.
    """

    def __init__(self, redis_executable: str) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="agentbus-demo-", dir="/tmp"))
        file = self.root / "config.json"
        document = {"data_directory": "data", "redis_executable": redis_executable}
        file.write_bytes(msgspec.json.encode(document))
        self.configuration: Configuration = load(file)
        self._before = os.environ.get(RUNTIME_VARIABLE)
        self._pids: list[int] = []

    @property
    def options(self) -> list[str]:
        """What commands of agentbus need to find the place, beside the environment."""
        return ["--config", self.configuration.path]

    def __enter__(self) -> Self:
        os.environ[RUNTIME_VARIABLE] = str(self.root / "run")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._stop()
        finally:
            if self._before is None:
                del os.environ[RUNTIME_VARIABLE]
            else:
                os.environ[RUNTIME_VARIABLE] = self._before
            shutil.rmtree(self.root, ignore_errors=True)

    def pid(self, name: str) -> int:
        """The process id of a part of the bus, now."""
        processes = admin.status(self.configuration)["processes"]
        pids = {process["name"]: process["pid"] for process in processes}
        self._pids = list(pids.values())
        if name not in pids:
            raise InternalError(f"the demo's bus has no {name}")
        return int(pids[name])

    def _stop(self) -> None:
        """In order, or else by force: the supervisor comes first, its children end with it."""
        try:
            admin.stop(self.configuration)
        except NotRunning:
            return
        except AgentbusError:
            for pid in self._pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
