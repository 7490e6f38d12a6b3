"""Where the demo's bus lives: a short temporary directory that nothing outlives."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec

from agentbus.config import CONFIG_VARIABLE, Configuration, load
from agentbus.runtime.paths import RUNTIME_VARIABLE, Paths, locate


class Place:
    """A configuration file, data and runtime directories, and the environment that leads there.

    The user's own bus and settings are out of reach of whatever runs in that environment. Under
    /tmp, whatever TMPDIR says, since a socket's path has room for 103 bytes.
    """

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="agentbus-demo-", dir="/tmp"))
        file = self.root / "config.json"
        file.write_bytes(msgspec.json.encode({"data_directory": str(self.root / "data")}))
        self.configuration: Configuration = load(file)
        self.environment: Mapping[str, str] = {
            **{key: value for key, value in os.environ.items() if key != CONFIG_VARIABLE},
            RUNTIME_VARIABLE: str(self.root / "run"),
        }
        self.paths: Paths = locate(self.configuration.settings, self.environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
