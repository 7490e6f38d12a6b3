"""Somebody at a terminal: `agentbus status`, `agentbus reset`, on a connection of their own."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from agentbus import __version__
from agentbus.wire.rpc import PROTOCOL
from tests.support.simulation.machine import Machine
from tests.support.simulation.processes import Process
from tests.support.simulation.records import require


class Operator(Process):
    """Asks one thing, and goes when it is answered or the connection ends."""

    def __init__(self, machine: Machine, method: Literal["status", "reset"]) -> None:
        super().__init__(machine.scheduler, f"operator-{method}", machine.pid())
        self._method = method
        self._lines = bytearray()
        listener = machine.listener
        self._end = None if listener is None else listener.connect()
        if self._end is None:
            self.end(1)
            return
        self._end.incoming.read(self, self._read, lambda: self.end(0))
        self._ask(1, "hello", {"protocol": PROTOCOL, "version": __version__})
        self._ask(2, method, {})

    def _ask(self, number: int, method: str, params: dict[str, Any]) -> None:
        assert self._end is not None
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.write(self._end.outgoing, msgspec.json.encode(request) + b"\n")

    def _read(self, data: bytes, _right: object) -> None:
        self._lines += data
        *lines, rest = self._lines.split(b"\n")
        self._lines = bytearray(rest)
        for line in lines:
            answer = msgspec.json.decode(line)
            if answer.get("id") == 2:
                self._answered(answer)
                self.end(0)

    def _answered(self, answer: dict[str, Any]) -> None:
        if "error" in answer:
            code = answer["error"]["data"]["code"]
            require(code in ("unavailable", "recovering"), "refused", self._method, answer)
        elif self._method == "status":
            known = ("starting", "recovering", "ready", "stopping")
            state = answer["result"]["status"]["state"]
            require(state in known, "no such state", state)

    def died(self) -> None:
        """Its connection ends."""
        if self._end is not None:
            self._end.close()
