"""A daemon of its own in a temporary directory, and a plain blocking connection to it."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from agentbus import __version__, config
from agentbus.runtime.paths import locate
from agentbus.wire.rpc import PROTOCOL

COMPLAINT = re.compile(r"Z (?:warn|error) | # ")
"""In a line of the daemon's logs, and of Redis'."""

COMPLAINTS = 40
READY_SECONDS = 30
STOP_SECONDS = 40


UNUSUAL = ("AGENTBUS_TEST", "PYTHONDONTWRITEBYTECODE")
"""What a program that is installed is not started with: without its bytecode it would be compiled
anew each time."""


class Place:
    """Directories and configuration of one bus; short paths, since socket names are limited."""

    def __init__(self, base: str, settings: Mapping[str, Any]) -> None:
        self.directory = tempfile.mkdtemp(prefix="ab-", dir=base)
        self.config_path = os.path.join(self.directory, "config.json")
        self.configure(settings)
        self.environment = {
            **os.environ,
            "AGENTBUS_RUNTIME_DIR": os.path.join(self.directory, "run"),
            "AGENTBUS_CONFIG": self.config_path,
        }
        for name in UNUSUAL:
            self.environment.pop(name, None)
        self.paths = locate(config.load(self.config_path).settings, self.environment)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """What the next start goes by, instead of all that was set before."""
        document = {"data_directory": os.path.join(self.directory, "data"), **settings}
        Path(self.config_path).write_bytes(msgspec.json.encode(document))

    def complaints(self) -> list[str]:
        """The last lines of the logs that say that something went wrong."""
        logs = Path(self.config_path).parent.glob("data/logs/*.log")
        lines = [line for log in logs for line in log.read_text().splitlines(keepends=True)]
        return sorted(line for line in lines if COMPLAINT.search(line))[-COMPLAINTS:]

    def remove(self) -> None:
        """Deletes everything; the daemon must have ended."""
        shutil.rmtree(self.directory, ignore_errors=True)


class Bus:
    """A running daemon. Use as a context manager; it is stopped in order, or else killed."""

    def __init__(self, base: str, settings: Mapping[str, Any]) -> None:
        self.place = Place(base, settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._keep = False

    def keep(self) -> None:
        """Leaves all files where they are this time, so that it can be entered again."""
        self._keep = True

    def __enter__(self) -> Bus:
        self._keep = False
        reader, writer = os.pipe()
        command = [sys.executable, "-m", "agentbus", "daemon", "--foreground"]
        command += ["--config", self.place.config_path, "--report-fd", str(writer)]
        self._process = subprocess.Popen(
            command,
            env=self.place.environment,
            pass_fds=(writer,),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(writer)
        with open(reader, "rb") as report:
            line = report.readline()
        if not line or not msgspec.json.decode(line).get("ready"):
            self.__exit__(None, None, None)
            raise RuntimeError(f"the daemon did not start: {line.decode() or 'it died'}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
            sys.stderr.writelines(self.place.complaints())
        if not self._keep:
            self.place.remove()

    def restart(self) -> None:
        """Another daemon with the same files."""
        self.keep()
        self.__exit__(None, None, None)
        self.__enter__()

    def status(self) -> dict[str, Any]:
        """The document of `agentbus status --json`."""
        with Peer(self.place.paths.socket) as peer:
            status: dict[str, Any] = peer.call("status")["status"]
        return status


class Peer:
    """A connection that says one thing at a time; notifications are left out."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(READY_SECONDS)
        self.socket.connect(path)
        self.rest = b""
        self._ids = itertools.count(1)
        self.call("hello", protocol=PROTOCOL, version=__version__)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result. Raises RuntimeError with what the daemon said instead."""
        number = next(self._ids)
        self.socket.sendall(request(number, method, params) + b"\n")
        while True:
            line = msgspec.json.decode(self._line())
            if line.get("id") != number:
                continue
            if "error" in line:
                raise RuntimeError(f"{method}: {line['error']}")
            result: dict[str, Any] = line["result"]
            return result

    def _line(self) -> bytes:
        while b"\n" not in self.rest:
            data = self.socket.recv(1 << 16)
            if not data:
                raise RuntimeError("the daemon closed the connection")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line


def request(number: int | str, method: str, params: Mapping[str, Any]) -> bytes:
    """A request's line without its end."""
    document = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return msgspec.json.encode(document)
