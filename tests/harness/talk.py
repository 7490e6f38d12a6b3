"""What tests have a harness and the second agent do."""

from __future__ import annotations

from typing import Any

import msgspec
import psutil

from tests.harness.model import Turn
from tests.harness.programs import Conversation, Server
from tests.support.stdio import Adapter


def next_message(agent: Adapter) -> dict[str, Any]:
    """The one that the second agent receives next."""
    (message,) = agent.call("recv", max_messages=1, wait_seconds=30)["messages"]
    found: dict[str, Any] = message
    return found


def contents(turn: Turn) -> list[str]:
    """Of the messages that the model is shown."""
    return [message["content"] for message in turn.result["messages"]]


def exchange(harness: Conversation, turn: Turn, other: Adapter, text: str) -> Turn:
    """The harness sends a text, the second agent answers it, the harness receives the answer."""
    turn.call("send", channel="general", content=text)
    turn = harness.turn()
    sent = turn.result
    turn.call("recv", wait_seconds=30)
    message = next_message(other)
    assert (message["content"], message["message_id"]) == (text, sent["message_id"])
    assert message["application"] == harness.program.application
    if harness.knows_session:
        assert message["session"] == harness.session
    answer = f"Bert has read: {text}"
    other.call("send", channel="general", content=answer, reply_to=sent["message_id"])
    turn = harness.turn()
    assert contents(turn) == [answer]
    return turn


def is_gone(process: psutil.Process) -> bool:
    """Whether it has ended; that it is not reaped is the affair of whoever is its parent now."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def impatient(server: Server) -> Server:
    """With calls that are given up soon."""
    return msgspec.structs.replace(server, call_seconds=3)
