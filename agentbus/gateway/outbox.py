"""Where the parts of the core put what the shell is to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentbus.errors import AgentbusError
from agentbus.gateway import replies
from agentbus.gateway.connections import Call, Connection
from agentbus.gateway.events import Effect, SendFirst, SendIfRead, SendLines
from agentbus.wire.events import Send
from agentbus.wire.rpc import Params


class Outbox:
    """The effects of the event being handled, and the numbers by which answers find back."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.refused = 0
        """Requests answered with an error."""
        self._refs = 0
        self._lines: dict[int, list[bytes]] = {}
        """Of the effects so far, those lines of a connection to which another may be added."""

    def take(self) -> list[Effect]:
        """The effects so far, which are not there any more."""
        effects, self.effects = self.effects, []
        self._lines.clear()
        return effects

    def ref(self) -> int:
        """A number not used before."""
        self._refs += 1
        return self._refs

    # ---- to adapters

    def line(self, connection: Connection, line: bytes) -> None:
        """A line to whoever is connected there."""
        self.pieces(connection, (line,))

    def pieces(self, connection: Connection, pieces: Sequence[bytes]) -> None:
        """The same for a line in pieces."""
        if connection.closed or not pieces:
            return
        lines = self._lines.get(connection.id)
        if lines is None:
            lines = self._lines[connection.id] = []
            self.effects.append(SendLines(connection.id, lines))
        lines += pieces

    def line_first(self, connection: Connection, line: bytes) -> None:
        """A line that is written before whatever follows to anybody."""
        if not connection.closed:
            self._lines.clear()
            self.effects.append(SendFirst(connection.id, line))

    def line_if_read(self, connection: Connection, line: bytes) -> None:
        """A line that may be missed by whoever is far behind with reading."""
        if not connection.closed:
            self._lines.pop(connection.id, None)
            self.effects.append(SendIfRead(connection.id, line))

    def answer(self, call: Call, result: Params) -> None:
        """Ends a call."""
        call.connection.unanswered -= 1
        if call.id is not None:
            self.pieces(call.connection, (replies.result(call.id, result),))

    def refuse(self, call: Call, error: AgentbusError) -> None:
        """Ends a call that was not carried out."""
        call.connection.unanswered -= 1
        self.refused += 1
        if call.id is not None:
            self.line(call.connection, replies.error(call.id, error))

    def done(self, calls: Sequence[Call]) -> None:
        """Ends calls of one connection whose result is empty."""
        if calls:
            connection = calls[0].connection
            connection.unanswered -= len(calls)
            self.pieces(connection, [replies.done(each.id) for each in calls if each.id])

    def answer_all(self, calls: Sequence[Call], result: Params) -> None:
        """Ends several calls alike."""
        for call in calls:
            self.answer(call, result)

    def refuse_all(self, calls: Sequence[Call], error: AgentbusError) -> None:
        """Ends several calls that were not carried out."""
        for call in calls:
            self.refuse(call, error)

    # ---- to the daemon's processes

    def send(self, link: str, message: Any) -> None:
        """A frame."""
        self.effects.append(Send(link, message))
