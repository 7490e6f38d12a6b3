"""The inspection hook: an operation is shown to a program, which allows or denies it.

It reads one JSON object from stdin, `{"operation": "send" | "memory_edit" | "memory_delete",
"operation_id", "channel", "sender": {...}, "payload": {...}}`, and writes one to stdout,
`{"decision": "allow" | "deny", "reason"?: "..."}`. Anything else (another exit status than 0,
silence for too long, too much output, other output) makes the operation fail as not inspected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from agentbus.config import Settings
from agentbus.errors import AgentbusError, InspectionRejected, InspectionUnavailable
from agentbus.gateway.events import Inspect, Inspected, Note, StopInspection
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.pending import Operation, operation_id
from agentbus.model.message import Payload, Reference, Scalar, Sender
from agentbus.wire.links import Append, MemoryDelete, MemoryEdit

SIDE_BY_SIDE: Final = 8
REASON_CHARACTERS: Final = 2048
"""What is passed on of a reason."""

Then = Callable[[AgentbusError | None], None]


class Edit(msgspec.Struct, frozen=True, omit_defaults=True):
    """The payload of an edit; what is absent stays as it is."""

    memory_id: str
    content: str
    type: str | None = None
    metadata: dict[str, Scalar] | None = None
    references: list[Reference] | None = None


class Deletion(msgspec.Struct, frozen=True):
    """The payload of a deletion."""

    memory_id: str


class Document(msgspec.Struct, frozen=True):
    """What the program reads."""

    operation: Literal["send", "memory_edit", "memory_delete"]
    operation_id: str
    channel: str
    sender: Sender
    payload: Payload | Edit | Deletion


class Decision(msgspec.Struct, frozen=True):
    """What the program writes."""

    decision: Literal["allow", "deny"]
    reason: str | None = None


_encode = msgspec.json.Encoder().encode
_decision = msgspec.json.Decoder(Decision)


class _Inspection:
    """One operation's."""

    def __init__(self, ref: int, operation: Operation, document: bytes, then: Then) -> None:
        self.ref = ref
        self.operation = operation
        self.document = document
        self.then = then


class Inspector:
    """Inspections under way, at most so many side by side, and those that wait."""

    def __init__(self, out: Outbox, settings: Settings) -> None:
        self._out = out
        self._seconds = settings.inspection_timeout_seconds
        self.is_wanted = bool(settings.inspection_command)
        self._running: dict[int, _Inspection] = {}
        self._waiting: deque[_Inspection] = deque()

    def inspect(self, operation: Operation, channel: str, then: Then) -> None:
        """Has `then` called with why not, or None; never before this has returned."""
        document = _encode(_document(operation, channel))
        self._waiting.append(_Inspection(self._out.ref(), operation, document, then))
        self._begin()

    def inspected(self, event: Inspected) -> None:
        """A program has ended."""
        inspection = self._running.pop(event.ref)
        error = judge(event)
        if error is not None:
            self._note(inspection.operation, error)
        self._begin()
        inspection.then(error)

    def forget(self, operation: Operation) -> None:
        """Nobody waits for that any more."""
        for inspection in self._waiting:
            if inspection.operation is operation:
                self._waiting.remove(inspection)
                return
        for ref, inspection in self._running.items():
            if inspection.operation is operation:
                del self._running[ref]
                self._out.effects.append(StopInspection(ref))
                self._begin()
                return

    def _begin(self) -> None:
        while self._waiting and len(self._running) < SIDE_BY_SIDE:
            inspection = self._waiting.popleft()
            self._running[inspection.ref] = inspection
            effect = Inspect(inspection.ref, inspection.document, self._seconds)
            self._out.effects.append(effect)

    def _note(self, operation: Operation, error: AgentbusError) -> None:
        inspected = operation.frame
        assert operation.attachment is not None
        assert isinstance(inspected, Append | MemoryEdit | MemoryDelete)
        fields = {
            "operation_id": operation_id(inspected),
            "sender": operation.attachment.display_name,
            "session": operation.attachment.names.native,
            "reason": error.reason or "none given",
        }
        self._out.effects.append(Note(error.code, fields))


def judge(event: Inspected) -> AgentbusError | None:
    """What follows from what a program did; None: the operation is allowed."""
    if event.failure:
        return _unavailable(event.failure)
    try:
        decision = _decision.decode(event.output)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _unavailable(
            'it did not write one JSON object like {"decision": "allow"} or '
            '{"decision": "deny", "reason": "..."}'
        )
    if decision.decision == "allow":
        return None
    reason = decision.reason[:REASON_CHARACTERS] if decision.reason else None
    because = f": {reason}" if reason else ", without a reason"
    return InspectionRejected(
        f"the inspection command of this bus denied the operation{because}", reason=reason
    )


def _unavailable(why: str) -> InspectionUnavailable:
    return InspectionUnavailable(
        f"the inspection command of this bus failed, so nothing was stored: {why}; trying again "
        "may help, else have a person look at inspection_command",
        reason=why,
    )


def _document(operation: Operation, channel: str) -> Document:
    frame, attachment = operation.frame, operation.attachment
    assert attachment is not None
    assert isinstance(frame, Append | MemoryEdit | MemoryDelete)
    sender, identity = attachment.sender, operation_id(frame)
    if isinstance(frame, Append):
        return Document("send", identity, channel, sender, frame.payload)
    if isinstance(frame, MemoryDelete):
        return Document("memory_delete", identity, channel, sender, Deletion(frame.memory_id))
    edit = Edit(
        frame.memory_id, frame.content, frame.message_type, frame.metadata, frame.references
    )
    return Document("memory_edit", identity, channel, sender, edit)
