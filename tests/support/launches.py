"""How many daemons were launched for others, told by what each interpreter does first."""

from __future__ import annotations

from pathlib import Path

from tests.support.daemon import Daemon


class Launches:
    """Of what is started in the environment of a bus from now on."""

    def __init__(self, bus: Daemon) -> None:
        directory = Path(bus.directory, "site")
        directory.mkdir()
        self._log = directory / "launched"
        (directory / "sitecustomize.py").write_text(
            "import sys\n"
            "if '--report-fd' in sys.orig_argv:\n"
            f"    open({str(self._log)!r}, 'a').write('x')\n"
        )
        bus.environment["PYTHONPATH"] = str(directory)

    def __int__(self) -> int:
        return len(self._log.read_text()) if self._log.exists() else 0
