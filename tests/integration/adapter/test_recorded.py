"""What real harness programs sent is sent again, to a real adapter with a real bus.

The recordings are made by `tests/harness/test_recording.py`. In each the program sends messages,
and receives what a second agent answers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentbus.runtime import rendezvous
from tests.support.daemon import Daemon
from tests.support.peers import Attached
from tests.support.recording import Recording, read
from tests.support.stdio import Adapter

RECORDED = Path(__file__).parents[2] / "harness" / "recorded"


@pytest.fixture(scope="module")
def bus() -> Iterator[Daemon]:
    """A running daemon."""
    with Daemon() as daemon:
        daemon.start()
        yield daemon


@pytest.fixture(params=sorted(RECORDED.glob("*.jsonl")), ids=lambda path: path.stem)
def recording(request: pytest.FixtureRequest) -> Recording:
    """Each in turn."""
    return read(request.param)


@pytest.fixture
def other(bus: Daemon, recording: Recording) -> Iterator[Attached]:
    """The second agent."""
    with bus.peer() as peer:
        yield peer.attach(f"beside {recording.application}")


class Replay:
    """A recorded program, and a second agent that answers each of its messages."""

    def __init__(self, adapter: Adapter, other: Attached) -> None:
        self._adapter = adapter
        self._other = other
        self._calls: dict[Any, str] = {}
        self.sent: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self.received: list[str] = []

    def say(self, message: dict[str, Any]) -> None:
        """As it was recorded."""
        if message["method"] == "tools/call":
            self._calls[message["id"]] = message["params"]["name"]
        self._adapter.write(msgspec.json.encode(message) + b"\n")

    def hear(self, identifier: Any) -> None:
        """The answer, which is no JSON-RPC error."""
        answer = self._adapter.answer(identifier)
        assert "result" in answer, answer
        tool = self._calls.get(identifier)
        if tool is not None:
            self._called(tool, answer["result"]["structuredContent"])

    def _called(self, tool: str, result: dict[str, Any]) -> None:
        if "error" in result:
            self.errors.append(result["error"]["code"])
        elif tool == "send":
            (message,) = self._other.receive(1)
            self.sent.append(message)
            self._other.send("general", f"answer {message['message_id']}", message["message_id"])
        elif tool == "recv":
            self.received += [message["message_id"] for message in result["messages"]]


def test_a_recorded_program_talks_with_a_second_agent(
    bus: Daemon, other: Attached, recording: Recording
) -> None:
    if recording.left is not None:
        rendezvous.leave(bus.paths.runtime_directory, os.getpid(), recording.left)
    with Adapter({**bus.environment, **recording.environment}, greet=False) as adapter:
        replay = Replay(adapter, other)
        for step in recording.steps:
            if "harness" in step:
                replay.say(step["harness"])
            else:
                replay.hear(step["answered"])
        assert adapter.end() == 0
    assert [message["content"] for message in replay.sent] == ["first", "second"]
    bound = {(message["application"], message["session"]) for message in replay.sent}
    assert bound == {(recording.application, recording.session)}
    assert replay.errors == ["not_found"]
    assert replay.received == [f"answer {message['message_id']}" for message in replay.sent]
