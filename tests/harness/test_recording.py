"""What the programs send to their MCP server is what is recorded, and replayed where they are not.

With AGENTBUS_HARNESS_RECORD set the recordings are written anew instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.programs import GeminiCli, Program
from tests.harness.talk import exchange
from tests.support.daemon import Daemon, wait
from tests.support.recording import Recording, Scrubber, read, steps
from tests.support.stdio import Adapter

RECORDED = Path(__file__).with_name("recorded")
FIRST = {"claude-code": "server/discover"}
"""Others begin with `initialize`."""


@pytest.fixture
def recording(program: Program, bus: Daemon, other: Adapter, tap_log: Path) -> Recording:
    """A conversation with everything in it that comes up: answers, an error, a call given up. The
    program is as `agentbus init` leaves it, hooks and all."""
    program.init(bus.environment)
    program.tap(tap_log, 3)
    with program.begin(None) as harness:
        turn = exchange(harness, harness.turn(), other, "first")
        turn.call("send", channel="nowhere", content="lost")
        turn = harness.turn()
        assert turn.result["error"]["code"] == "not_found"
        turn.call("recv", wait_seconds=50)
        turn = harness.turn()
        assert wait(lambda: "notifications/cancelled" in tap_log.read_text())
        turn = exchange(harness, turn, other, "second")
        turn.say("done")
        assert harness.ends() == 0
        session = harness.session
    return _recorded(program, session, tap_log)


def _recorded(program: Program, session: str, tap_log: Path) -> Recording:
    first, *log = (json.loads(line) for line in tap_log.read_text().splitlines())
    scrubber = Scrubber(str(program.home))
    return Recording(
        program=type(program).__name__,
        version=program.version,
        application=program.application,
        session=scrubber.scrub(session),
        left=scrubber.scrub(session) if isinstance(program, GeminiCli) else None,
        environment=scrubber.scrub(first["environment"]),
        steps=steps(log, scrubber),
    )


def test_a_program_sends_what_is_recorded(program: Program, recording: Recording) -> None:
    path = RECORDED / f"{program.application}.jsonl"
    assert recording.messages[0]["method"] == FIRST.get(program.application, "initialize")
    if os.environ.get("AGENTBUS_HARNESS_RECORD"):
        recording.write(path)
    known = read(path)
    assert recording.environment == known.environment
    assert shapes(recording) == shapes(known)


def shapes(recording: Recording) -> dict[str, list[str]]:
    """The members of what is sent, for each method."""
    found: dict[str, set[str]] = {}
    for message in recording.messages:
        found.setdefault(message["method"], set()).update(_members(message, ""))
    return {method: sorted(members) for method, members in found.items()}


def _members(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield path
        return
    for key, each in value.items():
        yield from _members(each, f"{path}/{key}")
