"""Facts about the machine, without which the absolute figures say nothing."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil  # type: ignore[import-untyped]

import agentbus

ROOT = Path(__file__).resolve().parent.parent


def facts(directory: str, server: str) -> dict[str, str]:
    """Names and values for the report's head; `server` names the Redis that the bus used."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "agentbus": f"{agentbus.__version__} {_commit()}".strip(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "file system": _file_system(directory),
        "load before": f"{os.getloadavg()[0]:.2f}",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "msgspec": msgspec.__version__,
        "server": server,
    }


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return f"({done.stdout.strip()})" if done.returncode == 0 else ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _file_system(directory: str) -> str:
    """Type of the file system that holds a directory: fsync costs nothing on tmpfs."""
    path = os.path.realpath(directory)
    holding = [
        part for part in psutil.disk_partitions(all=True) if _contains(part.mountpoint, path)
    ]
    return max(holding, key=lambda part: len(part.mountpoint)).fstype if holding else "unknown"


def _contains(mountpoint: str, path: str) -> bool:
    return os.path.commonpath([mountpoint, path]) == mountpoint
