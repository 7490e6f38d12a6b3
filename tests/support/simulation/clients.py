"""A harness with one conversation: an MCP client that outlives its adapters, and what it was shown.

It notes what was handed to it at the moment the last byte is out, since that is when the bus counts
it as delivered; it learns of it a little later.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.support.simulation.adapters import Adapter
from tests.support.simulation.machine import Machine
from tests.support.simulation.processes import Process
from tests.support.simulation.records import Handed

REVISION: Final = "2025-11-25"
RESTART_SECONDS: Final = 0.05

Arguments = dict[str, Any]
Result = dict[str, Any]


class Call:
    """A tool call; `then` gets the structured result, or None when its adapter died before it."""

    def __init__(self, number: int, tool: str, then: Callable[[Result | None], None]) -> None:
        self.number = number
        self.tool = tool
        self.then = then


class Client:
    """`shown` is told of every recv result, with the adapter that wrote it, and since when that one
    must have read all that the daemon had told it before."""

    def __init__(
        self, machine: Machine, name: str, shown: Callable[[Handed, Result], None]
    ) -> None:
        self.name = name
        self.reads = True
        self.adapter: Adapter | None = None
        self.lives = 0
        """Adapters so far."""
        self._machine = machine
        self._shown = shown
        self._numbers = 0
        self._calls: dict[int, Call] = {}
        self._lines = bytearray()
        self._received: dict[int, None] = {}
        """Calls of recv, whose results are messages."""

    @property
    def idle(self) -> bool:
        """Whether it waits for nothing."""
        return not self._calls

    # ---- the adapter's life

    def start(self) -> None:
        """An adapter, and the handshake."""
        if self.adapter is not None:
            return
        self.lives += 1
        self.adapter = Adapter(self._machine, self, self.name)
        self.adapter.on_death.append(self._adapter_died)
        hello = {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "sim", "version": "1"},
        }
        self._request("initialize", hello)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _adapter_died(self, _process: Process, _status: int) -> None:
        self.adapter = None
        self._lines.clear()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.then(None)
        self._machine.scheduler.after(RESTART_SECONDS, self.start)

    def block(self, seconds: float) -> None:
        """It does not read what the adapter writes."""
        self.reads = False
        self._machine.scheduler.after(seconds, self._unblock)

    def _unblock(self) -> None:
        self.reads = True
        if self.adapter is not None:
            self.adapter.harness_reads()

    # ---- calls

    def call(
        self, tool: str, arguments: Arguments, then: Callable[[Result | None], None]
    ) -> Call | None:
        """Calls a tool; None where no adapter runs."""
        if self.adapter is None:
            return None
        number = self._request("tools/call", {"name": tool, "arguments": arguments})
        call = self._calls[number] = Call(number, tool, then)
        if tool == "recv":
            self._received[number] = None
        return call

    def cancel(self, call: Call) -> bool:
        """Its result is not wanted any more; False: it has come, and was told."""
        if self._calls.pop(call.number, None) is None:
            return False
        params = {"requestId": call.number}
        self._write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        return True

    def _request(self, method: str, params: Result) -> int:
        self._numbers += 1
        self._write({"jsonrpc": "2.0", "id": self._numbers, "method": method, "params": params})
        return self._numbers

    def _write(self, message: Result) -> None:
        assert self.adapter is not None
        self._lines += msgspec.json.encode(message) + b"\n"
        self._machine.scheduler.after(0, self._flush, self.adapter)

    def _flush(self, adapter: Adapter) -> None:
        """What was said in one moment is written at once."""
        if adapter is self.adapter and self._lines:
            lines, self._lines = bytes(self._lines), bytearray()
            adapter.stdin.outgoing.write(lines)

    # ---- what comes

    def handed(self, adapter: Adapter, line: bytes, *, begun: bool) -> None:
        """The last byte of a line is out."""
        reply = msgspec.json.decode(line)
        if self._received.pop(reply.get("id"), 0) is None:
            known = adapter.connected and not begun
            connected = adapter.connected_at if known else math.inf
            attentive = adapter.attentive_since if known else math.inf
            handed = Handed(self.name, self.lives, connected, attentive)
            self._shown(handed, reply["result"]["structuredContent"])

    def said(self, adapter: Adapter, line: bytes) -> None:
        """A line has been read."""
        reply = msgspec.json.decode(line)
        call = self._calls.pop(reply.get("id"), None)
        if call is not None:
            call.then(reply["result"]["structuredContent"])
