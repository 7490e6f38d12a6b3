"""Following channels as they are written, over restarts of the daemon, without missing anything."""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

import msgspec

from agentbus.client.client import Client
from agentbus.client.person import Person
from agentbus.errors import AgentbusError, NotFound, NotRunning, StaleAttachment, Unavailable
from agentbus.model.message import Message
from agentbus.runtime.clock import SystemClock
from agentbus.wire.rpc import (
    ChannelEntry,
    DeliverNote,
    Gap,
    HistoryResult,
    NoticeNote,
    StoppingNote,
    SubscribeResult,
)

LOOK_SECONDS: Final = 2.0
"""How long a channel that somebody has made may stay unseen; the heartbeat is no longer either,
however much comes meanwhile."""

WAIT_SECONDS: Final = float("inf")
PAGE: Final = 1000


class Changed(msgspec.Struct, frozen=True):
    """A memory has another content; `message` is its current revision, None: it was deleted."""

    channel: str
    memory_id: str
    message: Message | None


class Remark(msgspec.Struct, frozen=True):
    """Something about the bus, for a person."""

    text: str


Item = Message | Gap | Changed | Remark

_message: Final = msgspec.json.Decoder(Message)


class Tail:
    """`channels` are the wanted ones; none: all there are, and all that will be."""

    def __init__(self, person: Person, channels: list[str]) -> None:
        self._person = person
        self._wanted = channels
        self._positions: dict[str, int] = {}
        """Of each channel, the last position that was given out."""
        self._clock = SystemClock()
        self._look_at = 0.0

    def begin(self, count: int) -> list[Item]:
        """The newest `count` messages of all channels together; what comes later is in `follow`.

        Raises NotFound for a channel that is not there.
        """
        known = self._person.insist(self._channels)
        missing = [name for name in self._wanted if name not in {each.name for each in known}]
        if missing:
            raise NotFound(f"there is no channel {', '.join(missing)}; agentbus status shows all")
        return [*self._add([each.name for each in known], count)]

    def follow(self) -> Iterator[Item]:
        """Whatever comes, for ever. What was given out is reported when the next item is asked
        for."""
        while True:
            try:
                yield from self._step()
            except (Unavailable, NotRunning):
                self._person.hang_up()
                yield Remark("the bus is gone; waiting for it")
                yield from self._again()
                yield Remark("the bus is back")
            except StaleAttachment:  # after a sleep, or it was stopped for so long
                self._person.hang_up()
                yield from self._again()

    def end(self) -> None:
        """Leaves no cursor behind, if there is a bus."""
        try:
            for name in self._positions:
                self._person.client.unsubscribe(self._person.attachment, name)
        except (AgentbusError, AssertionError):
            return  # the cursor ends by itself when its time has come

    # ---- steps

    def _channels(self, client: Client) -> list[ChannelEntry]:
        found: list[ChannelEntry] = []
        cursor = None
        while True:
            page = client.list_channels(self._person.attachment, limit=PAGE, cursor=cursor)
            found += page.channels
            cursor = page.next_cursor
            if cursor is None:
                break
        return [each for each in found if not self._wanted or each.name in self._wanted]

    def _add(self, names: Iterable[str], count: int) -> Iterator[Item]:
        """Subscribes, from here on; the newest messages until here."""
        before = [self._person.insist(partial(self._enter, name, count)) for name in names]
        merged = list(heapq.merge(*before, key=lambda message: message.sent_at))
        yield from merged[-count:] if count else ()

    def _enter(self, name: str, count: int, client: Client) -> list[Message]:
        """Anew: of a tail that was killed a cursor may be left."""
        attachment = self._person.attachment
        client.unsubscribe(attachment, name)
        position = client.subscribe(attachment, name, include_own=True).position
        self._positions[name] = position
        if not count:
            return []
        page = client.history(attachment, name, before=position + 1, limit=min(count, PAGE))
        return [_message.decode(each) for each in page.messages]

    def _step(self) -> Iterator[Item]:
        now = self._clock.now().monotonic
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            yield from self._look()
        note = self._person.client.next_note(max(0.0, self._look_at - now))
        match note:
            case DeliverNote():
                yield from self._delivered(note)
            case NoticeNote():
                yield from _noticed(note)
            case StoppingNote(reason):
                yield Remark("the bus was stopped" if reason == "stop" else "the bus has failed")
            case _:
                pass  # of an epoch too: what is given out is given out, and `deliver` says the next

    def _look(self) -> Iterator[Item]:
        """The session is kept, and channels that somebody made are taken in."""
        self._person.keep()
        if not self._wanted:
            known = self._person.insist(self._channels)
            new = [each.name for each in known if each.name not in self._positions]
            yield from self._add(new, PAGE)

    def _delivered(self, note: DeliverNote) -> Iterator[Item]:
        yield from (gap for gap in note.gaps if gap.lost)
        for raw in note.messages:
            message = _message.decode(raw)
            if message.seq > self._positions.get(note.channel, 0):
                self._positions[note.channel] = message.seq
                yield message
        self._positions[note.channel] = max(note.through, self._positions.get(note.channel, 0))
        with contextlib.suppress(StaleAttachment):  # another epoch: what comes again is passed over
            self._person.client.delivered(
                self._person.attachment, note.epoch, [(note.subscription, note.through)]
            )

    def _again(self) -> Iterator[Item]:
        """Over another connection, once there is one; from where the last one ended."""
        for name, position in list(self._positions.items()):
            yield from self._rejoin(name, position)

    def _rejoin(self, name: str, position: int) -> Iterator[Item]:
        """A cursor that is left goes on by itself; else the channel's history fills what is between
        (not so after a reset, when there is no such channel, or it begins anew)."""

        def ask(client: Client) -> SubscribeResult:
            return client.subscribe(self._person.attachment, name, include_own=True)

        try:
            found = self._person.insist(ask, WAIT_SECONDS)
        except NotFound:
            del self._positions[name]
            return
        if not found.created:
            return
        self._positions[name] = found.position
        while position < found.position:
            page = self._person.insist(partial(self._between, name, position, found.position))
            for raw in page.messages:
                yield (message := _message.decode(raw))
                position = message.seq
            if not page.more:
                return

    def _between(self, name: str, after: int, last: int, client: Client) -> HistoryResult:
        return client.history(self._person.attachment, name, after=after, before=last + 1)


def _noticed(note: NoticeNote) -> Iterator[Item]:
    if note.text is not None:
        yield Remark(note.text)
    elif note.memory_id is not None:
        message = _message.decode(note.message) if note.message else None
        yield Changed(note.channel, note.memory_id, message)
