from __future__ import annotations

from itertools import islice
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from agentbus.client import tailing
from agentbus.client.tailing import LOOK_SECONDS, Remark, Tail
from agentbus.errors import StaleAttachment
from agentbus.model.ports import Instant
from agentbus.wire.rpc import DeliverNote, SubscribeResult
from tests.support.adapter_world import envelope

BUSY_SECONDS = 0.1
HISTORY_SECONDS = 60


class Bus:
    """A person's connection to a bus where somebody speaks ten times a second, and its clock."""

    def __init__(self) -> None:
        self.time = 100.0
        self.seq = 0
        self.kept: list[float] = []
        self.over = False
        self.connections = 1
        self.client: Any = self
        self.attachment = "a"

    def now(self) -> Instant:
        return Instant(self.time, self.time)

    def insist(self, ask: Any, _seconds: float = 0.0) -> Any:
        return ask(self)

    def hang_up(self) -> None:
        self.over = False
        self.connections += 1

    def keep(self) -> None:
        self.kept.append(self.time)
        if self.over:
            raise StaleAttachment("over")

    def list_channels(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(channels=[SimpleNamespace(name="general")], next_cursor=None)

    def unsubscribe(self, *_: Any) -> None:
        pass

    def subscribe(self, *_: Any, **__: Any) -> SubscribeResult:
        return SubscribeResult(
            subscription=1,
            channel="general",
            position=self.seq,
            expires_at="t",
            created=False,
            include_own=True,
        )

    def delivered(self, *_: Any) -> None:
        if self.over:
            raise StaleAttachment("over")

    def next_note(self, seconds: float) -> DeliverNote | None:
        assert seconds >= 0
        self.time += BUSY_SECONDS
        self.seq += 1
        return DeliverNote(
            attachment="a",
            epoch="1",
            subscription=1,
            channel="general",
            through=self.seq,
            messages=[msgspec.Raw(msgspec.json.encode(envelope(self.seq, str(self.seq))))],
        )


@pytest.fixture
def bus(monkeypatch) -> Bus:
    bus = Bus()
    monkeypatch.setattr(tailing, "SystemClock", lambda: bus)
    return bus


@pytest.mark.parametrize("channels", [[], ["general"]])
def test_a_session_is_kept_however_much_is_said(bus, channels):
    tail: Any = Tail(bus, channels)  # type: ignore[arg-type]
    tail.begin(0)
    for _ in islice(tail.follow(), int(HISTORY_SECONDS / BUSY_SECONDS)):
        pass
    gaps = [later - earlier for earlier, later in zip(bus.kept, bus.kept[1:], strict=False)]
    assert len(gaps) > HISTORY_SECONDS / LOOK_SECONDS - 3
    assert max(gaps) <= LOOK_SECONDS + 2 * BUSY_SECONDS


@pytest.mark.parametrize("channels", [[], ["general"]])
def test_a_session_that_was_given_up_is_taken_again_and_nothing_is_missed(bus, channels):
    tail: Any = Tail(bus, channels)  # type: ignore[arg-type]
    tail.begin(0)
    items = tail.follow()
    before = list(islice(items, 50))
    bus.over = True
    after = list(islice(items, 50))
    assert bus.connections == 2
    assert not any(isinstance(each, Remark) for each in before + after)
    assert [each.seq for each in before + after] == list(range(1, 101))
