"""Answers on their way to the harness, and what they hand off.

Delivery is decided here: a recv has taken messages from its session's inbox into a line; when the
last byte of the line is out they are handed off, and that is reported to the daemon in the same
breath. A line taken back, or a call cancelled before it had one, puts them back; so does a recall,
after which the call is answered anew, since what the line says has become obsolete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from agentbus.adapter.events import Effect, Withdraw, WriteStdout
from agentbus.adapter.reports import Reports
from agentbus.adapter.session import Session, Taken
from agentbus.errors import AgentbusError
from agentbus.wire.mcp import Line, McpServer


class Handoff(msgspec.Struct, frozen=True, eq=False):
    """What a recv has taken for its result, until the result is written or not.

    `again` has the call go on as if it had not been answered.
    """

    session: Session
    taken: Taken
    again: Callable[[], None]


class Answers:
    """Lines by their token, and the calls that each answers."""

    def __init__(self, mcp: McpServer, reports: Reports, effects: list[Effect]) -> None:
        self._mcp = mcp
        self._reports = reports
        self._effects = effects
        self._lines: dict[int, tuple[int, ...]] = {}
        self._written_with: dict[int, int] = {}
        self._unwanted: dict[int, None] = {}
        self._obsolete: dict[int, None] = {}
        self._handoffs: dict[int, Handoff] = {}
        self._tokens = 0

    @property
    def unwritten(self) -> int:
        """Lines of which bytes are still to be written."""
        return len(self._lines)

    def is_unwritten(self, token: int) -> bool:
        """Whether bytes of that line are still to be written."""
        return token in self._lines

    def is_taking_back(self, session: Session) -> bool:
        """Whether messages of a recv that was cancelled or recalled are about to come back, or to
        be out after all."""
        handoffs = (self._handoffs.get(call) for call in (*self._unwanted, *self._obsolete))
        return any(each is not None and each.session is session for each in handoffs)

    def answer(self, call: int, structured: bytes, handoff: Handoff | None = None) -> None:
        """A tool's result, which hands off what was taken for it."""
        if handoff is not None:
            self._handoffs[call] = handoff
        self._write_if(self._mcp.answer(call, structured))

    def fail(self, call: int, error: AgentbusError) -> None:
        """A tool's failure."""
        self._write_if(self._mcp.fail(call, error))

    def _write_if(self, line: Line | None) -> None:
        if line is not None:
            self.write(line)

    def write(self, line: Line) -> int:
        """Has a line written; its token."""
        self._tokens += 1
        self._lines[self._tokens] = line.calls
        for call in line.calls:
            self._written_with[call] = self._tokens
        self._effects.append(WriteStdout(line.data, self._tokens))
        return self._tokens

    def flushed(self, token: int) -> None:
        """The one place where something counts as delivered."""
        calls = self._lines.pop(token, ())
        for call in calls:
            del self._written_with[call]
            self._unwanted.pop(call, None)
            self._obsolete.pop(call, None)
            handoff = self._handoffs.pop(call, None)
            if handoff is not None:
                handoff.taken.inbox.hand_off(handoff.taken.batch)
                self._reports.report(handoff.session)
        self._mcp.settle(calls)

    # answers that are not to be written

    def cancelled(self, call: int) -> None:
        """Nobody wants this answer: it is taken back if that can still be done."""
        self._unwanted[call] = None
        self._take_back(call)

    def recall(self, is_obsolete: Callable[[Handoff], bool]) -> None:
        """What these say must not be said any more: they are answered anew, if they can be."""
        for call, handoff in list(self._handoffs.items()):
            if is_obsolete(handoff):
                self._obsolete[call] = None
                self._take_back(call)

    def _take_back(self, call: int) -> None:
        token = self._written_with.get(call)
        if token is None:
            self._drop([call])
            return
        unsent = [each for each in self._effects if _writes(each, token)]
        if unsent:
            self._effects.remove(unsent[0])
            self.withdrawn(token)
        else:
            self._effects.append(Withdraw(token))

    def withdrawn(self, token: int) -> None:
        """No byte of the line is out; the other calls of a batch are answered by another line."""
        calls = self._lines.pop(token, ())
        for call in calls:
            del self._written_with[call]
        self._drop(calls)

    def _drop(self, calls: Sequence[int]) -> None:
        """Of these, some get another answer, and then some get none: what was taken goes back."""
        again = [call for call in calls if call in self._obsolete and call not in self._unwanted]
        for call in again:
            del self._obsolete[call]
            self._mcp.reopen(call)
            self._restore(call).again()
        line = None
        for call in [call for call in calls if call in self._unwanted]:
            del self._unwanted[call]
            self._obsolete.pop(call, None)
            if call in self._handoffs:
                self._restore(call)
            line = self._mcp.abandon(call)
        self._write_if(line)

    def _restore(self, call: int) -> Handoff:
        handoff = self._handoffs.pop(call)
        handoff.session.restore(handoff.taken)
        return handoff


def _writes(effect: Effect, token: int) -> bool:
    return isinstance(effect, WriteStdout) and effect.token == token
