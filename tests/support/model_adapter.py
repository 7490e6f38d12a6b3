"""A session behind a real adapter, as an agent sees it: what its calls of recv hand over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from tests.support.daemon import Daemon
from tests.support.model_bus import IDLE, SLACK, ModelBus
from tests.support.stdio import Adapter, ToolError

BOUND = 60.0
PASSING = {"recovering", "unavailable", "session_already_connected"}
CHANNELS = ("general", "memory")


class ModelAdapter:
    """One conversation over any number of adapters. What was handed over comes once, unless the
    adapter was killed before the daemon knew: then it may come again, but nothing is left out."""

    def __init__(self, daemon: Daemon, model: ModelBus, name: str) -> None:
        self._daemon = daemon
        self._model = model
        self.name = name
        self._adapter: Adapter | None = None
        self._handed: dict[str, int] = {}
        """The last position handed over of each channel that is followed."""
        self._surely: dict[str, int] = {}
        """Where its durable cursor is at least."""
        self._doubtful: set[str] = set()
        """Channels whose cursor may be anywhere between the two."""
        self._may_run_out: set[str] = set()
        self._active = 0.0

    # ---- its life

    def end(self) -> None:
        """The harness closes the adapter, which reports what it has handed over."""
        if self._adapter is not None:
            adapter, self._adapter = self._adapter, None
            adapter.end()

    def kill(self) -> None:
        """The adapter dies; what it has handed over may not be known."""
        if self._adapter is not None:
            self._adapter.kill()
            self.end()
            self._doubtful = set(self._handed)

    def forget(self) -> None:
        """The bus is another."""
        self.kill()
        self._handed, self._surely = {}, {}
        self._doubtful, self._may_run_out = set(), set()

    # ---- calls

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result, asked for again where something is away for the moment."""
        self._look_at_clock()
        deadline = time.monotonic() + BOUND
        while True:
            try:
                return self._running().call(tool, **arguments)
            except ToolError as error:
                if error.code not in PASSING or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def _running(self) -> Adapter:
        if self._adapter is None:
            named = ("--application", "tests", "--session", self.name, "--agent", "Dee")
            self._adapter = Adapter(self._daemon.environment, *named)
            self._active = self._model.now
        return self._adapter

    def _look_at_clock(self) -> None:
        """Only a new adapter surely prolongs its cursors: it tells of a recv once a minute, by its
        own clock."""
        if self._model.now - self._active > IDLE - SLACK:
            self._may_run_out |= set(self._handed)

    def follow(self) -> None:
        """Subscribes to what is not followed."""
        for channel in CHANNELS:
            if channel not in self._handed:
                position = self.ask("subscribe", channel=channel)["position"]
                self._handed[channel] = self._surely[channel] = position
                self._doubtful.discard(channel)
                self._may_run_out.discard(channel)

    # ---- receiving

    def receive(self, most: int) -> None:
        """One call of recv."""
        self.follow()
        self._take(self.ask("recv", max_messages=most))

    def receive_meanwhile(self, happens: Callable[[], None]) -> None:
        """A call of recv that waits while something happens; it may be refused for the moment."""
        self.follow()
        self._look_at_clock()
        adapter = self._running()
        arguments = {"wait_seconds": 5}
        number = adapter.request("tools/call", name="recv", arguments=arguments)
        happens()
        result = adapter.answer(number)["result"]
        if result.get("isError"):
            assert result["structuredContent"]["error"]["code"] in PASSING, result
        else:
            self._take(result["structuredContent"])

    def receive_and_cancel(self, most: int, *, at_once: bool) -> None:
        """A call that is given up, together with the request or a moment later. What it says all
        the same was handed over, and what it does not say was not."""
        self.follow()
        self._look_at_clock()
        adapter = self._running()
        arguments = {"max_messages": most, "wait_seconds": 30}
        call = {"name": "recv", "arguments": arguments}
        number = f"given up at {time.monotonic()}"
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
        gone = {"requestId": number, "reason": "given up"}
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": gone}
        lines = [msgspec.json.encode(line) + b"\n" for line in (request, cancel)]
        if at_once:
            lines = [b"".join(lines)]
        for line in lines:
            adapter.write(line)
        adapter.ask("ping")
        said = adapter.said(number)
        if said is not None:
            self._take(adapter.structured(said["result"]))

    def drain(self) -> None:
        """Receives until everything that is due was handed over."""
        deadline = time.monotonic() + BOUND
        self.receive(100)
        while set(self._handed) != set(CHANNELS) or any(map(self._due, self._handed)):
            assert time.monotonic() < deadline, f"{self.name} waits after {self._handed}"
            self.receive(100)

    def _due(self, channel: str) -> list[int]:
        return self._model.due(self.name, channel, self._handed[channel])

    def _take(self, result: dict[str, Any]) -> None:
        for gap in result["gaps"]:
            assert gap["channel"] == "general", gap
            before = [each for each in result["messages"] if _is_before(each, gap)]
            self._take_messages(before)
            self._take_gap(gap)
            result["messages"] = [each for each in result["messages"] if each not in before]
        self._take_messages(result["messages"])
        for expired in result["expired"]:
            self._take_expiry(expired["channel"], expired["position"])

    def _take_messages(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            channel, seq = message["channel"], message["seq"]
            entry = self._model.channels[channel][seq]
            self._rewind(channel, seq - 1)
            assert self._due(channel)[:1] == [seq], (self._handed, self._due(channel), seq)
            self._model.check_content(entry, message)
            self._handed[channel] = seq

    def _take_gap(self, gap: dict[str, Any]) -> None:
        channel = gap["channel"]
        self._rewind(channel, gap["after_seq"])
        assert gap["after_seq"] >= self._handed[channel], "a gap goes over what was handed over"
        skipped = [seq for seq in self._due(channel) if seq <= gap["after_seq"]]
        assert not skipped, f"{skipped} are missing before {gap}"
        self._model.check_gap(self.name, channel, gap)
        self._handed[channel] = gap["resumed_at_seq"] - 1

    def _rewind(self, channel: str, position: int) -> None:
        """After a killed adapter things may come again, from anywhere its reports had got to."""
        if channel in self._doubtful and position < self._handed[channel]:
            assert position >= self._surely[channel] or self._nothing_between(channel, position)
            self._handed[channel] = position
        self._doubtful.discard(channel)

    def _nothing_between(self, channel: str, position: int) -> bool:
        between = self._model.due(self.name, channel, position)
        return not any(seq <= self._surely[channel] for seq in between)

    def _take_expiry(self, channel: str, position: int) -> None:
        assert channel in self._may_run_out, f"the cursor of {channel} ran out early"
        assert position >= self._surely[channel], "a cursor went back"
        beyond = self._model.due(self.name, channel, self._handed[channel])
        assert not any(seq <= position for seq in beyond), "a cursor passed what nobody was handed"
        del self._handed[channel], self._surely[channel]
        self._doubtful.discard(channel)
        self._may_run_out.discard(channel)


def _is_before(message: dict[str, Any], gap: dict[str, Any]) -> bool:
    return message["channel"] == gap["channel"] and message["seq"] <= gap["after_seq"]
