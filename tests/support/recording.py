"""Conversations that real harness programs had with the adapter, to be had again.

A file has a JSON line for each step. The first tells what was recorded:

    {"program": ..., "version": ..., "application": ..., "session": ..., "environment": {...},
     "left": what a session hook has left for the adapter, or null}

then, in the order in which they passed, `{"harness": MESSAGE}` for what the program sent, and
`{"answered": ID}` where an answer to it came. What the answer was is the adapter's affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|ses_[0-9A-Za-z]{16,}")


class Recording(msgspec.Struct, frozen=True):
    """One conversation."""

    program: str
    version: str
    application: str
    session: str
    environment: dict[str, str]
    steps: list[dict[str, Any]]
    left: str | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What the program sent."""
        return [step["harness"] for step in self.steps if "harness" in step]

    def write(self, path: Path) -> None:
        """Into a file."""
        head = {key: value for key, value in msgspec.to_builtins(self).items() if key != "steps"}
        lines = (msgspec.json.encode(line) + b"\n" for line in (head, *self.steps))
        path.write_bytes(b"".join(lines))


def read(path: Path) -> Recording:
    """From a file."""
    head, *steps = (msgspec.json.decode(line) for line in path.read_bytes().splitlines())
    return msgspec.convert({**head, "steps": steps}, Recording)


class Scrubber:
    """Takes out what tells of the machine, the person, and the time; the same for the same."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._ids: dict[str, str] = {}

    def scrub(self, value: Any) -> Any:
        """A copy of a JSON value."""
        match value:
            case dict():
                return {key: self._member(key, each) for key, each in value.items()}
            case list():
                return [self.scrub(each) for each in value]
            case str():
                return UUID.sub(self._number, value).replace(self._directory, "/home/user")
            case _:
                return value

    def _member(self, key: str, value: Any) -> Any:
        return 0 if key.endswith("_unix_ms") else self.scrub(value)

    def _number(self, found: re.Match[str]) -> str:
        number = f"00000000-0000-4000-8000-{len(self._ids) + 1:012}"
        return self._ids.setdefault(found[0], number)


def steps(log: Iterable[dict[str, Any]], scrubber: Scrubber) -> list[dict[str, Any]]:
    """Of what a tap kept: lines with `from` and `message`."""
    found: list[dict[str, Any]] = []
    for entry in log:
        message = entry["message"]
        if entry["from"] == "harness":
            found.append({"harness": scrubber.scrub(message)})
        elif "method" not in message:
            found.append({"answered": message["id"]})
    return found
