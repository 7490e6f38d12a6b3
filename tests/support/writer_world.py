"""The writer's core on a real database file, with a clock that is moved by hand."""

from __future__ import annotations

import itertools
from contextlib import closing
from pathlib import Path
from typing import Any

from agentbus.config import Settings
from agentbus.model.ids import AttachmentId
from agentbus.model.message import Payload, fingerprint
from agentbus.model.ports import Instant
from agentbus.runtime.faults import Fault, no_fault
from agentbus.store.read import Reader
from agentbus.wire.events import Closed, Exit, Opened, Received, Send, TurnEnded, WakeAt, Woke
from agentbus.wire.links import (
    CONTROL,
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    Append,
    Committed,
    GatewayHello,
    Outcomes,
    Readiness,
    Register,
    Registered,
    Stop,
    Welcome,
)
from agentbus.writer.core import Core
from agentbus.writer.opening import open_store

START = 1_796_000_000.0
"""Wall time at which a world begins, seconds since 1970."""


class CountedTokens:
    """The `Tokens` of tests."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def token(self) -> str:
        return f"{next(self._numbers):032x}"


class World:
    """One database, one writer at a time, and whoever talks to it."""

    def __init__(self, directory: Path, settings: Settings | None = None) -> None:
        self.path = str(directory / "bus.sqlite3")
        self.settings = settings or Settings(sqlite_synchronous="normal")
        self.tokens = CountedTokens()
        self.time = 0.0
        self.incarnation = 0
        self.sent: list[Send] = []
        self.effects: list[Any] = []
        self._refs = itertools.count(1)
        self._attachments = itertools.count(1)
        self._woken_at: float | None = None
        self.fault: Fault = no_fault
        self.start()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    # ---- the process

    def start(self, *, ready: bool = True) -> None:
        """A writer on the file, linked, greeted, with a projection that takes messages, unless it
        is to be heard later."""
        self.store = open_store(self.path, self.settings, self.tokens, self.now())
        self.core = Core(self.store, self.settings, self.tokens, lambda point: self.fault(point))
        self._woken_at = None
        for link in (GATEWAY_WRITER, WRITER_PROJECTOR):
            self.handle(Opened(link))
        if ready:
            self.tell(WRITER_PROJECTOR, Readiness(True, ""))
        self.greet()
        self.sent.clear()

    def restart(self, *, ready: bool = True) -> None:
        """It dies where it stands, and another one takes over."""
        self.store.close()
        self.start(ready=ready)

    def greet(self) -> Welcome:
        """The gateway says hello with the incarnation it has."""
        self.tell(GATEWAY_WRITER, GatewayHello(self.incarnation))
        self.handle(TurnEnded())
        (welcome,) = self.take(Welcome)
        self.incarnation = welcome.incarnation
        return welcome

    def replace_gateway(self) -> Welcome:
        """The gateway dies, a fresh one greets."""
        self.handle(Closed(GATEWAY_WRITER))
        self.handle(Opened(GATEWAY_WRITER))
        self.incarnation = 0
        return self.greet()

    def stop(self) -> None:
        """An orderly stop, the gateway having gone before."""
        self.handle(Closed(GATEWAY_WRITER))
        self.tell(CONTROL, Stop())
        self.handle(TurnEnded())

    # ---- events

    def now(self) -> Instant:
        return Instant(self.time, START + self.time)

    @property
    def milliseconds(self) -> int:
        return int((START + self.time) * 1000)

    def handle(self, event: Any) -> None:
        for effect in self.core.handle(event, self.now()):
            if isinstance(effect, Send):
                self.sent.append(effect)
            elif isinstance(effect, WakeAt):
                self._woken_at = effect.when
            else:
                self.effects.append(effect)

    def tell(self, link: str, *messages: Any) -> None:
        for message in messages:
            self.handle(Received(link, message))

    def wake(self) -> bool:
        """Lets the time come for which a wake-up was asked, if one was."""
        if self._woken_at is None:
            return False
        self.time, self._woken_at = max(self.time, self._woken_at), None
        self.handle(Woke())
        return True

    def take(self, kind: type[Any]) -> list[Any]:
        """What was sent of that kind since the last time."""
        found = [send.message for send in self.sent if isinstance(send.message, kind)]
        self.sent = [send for send in self.sent if not isinstance(send.message, kind)]
        return found

    def answers(self) -> list[Any]:
        return [answer for batch in self.take(Outcomes) for answer in batch.outcomes]

    def ask(self, *operations: Any) -> list[Any]:
        """The answers to operations that come in one turn."""
        self.tell(GATEWAY_WRITER, *operations)
        self.handle(TurnEnded())
        answers = self.answers()
        while self._woken_at is not None and self._woken_at <= self.time:
            self.wake()
            answers += self.answers()
        return answers

    def committed(self) -> list[Committed]:
        return self.take(Committed)

    @property
    def exits(self) -> list[int]:
        return [effect.code for effect in self.effects if isinstance(effect, Exit)]

    # ---- operations

    def ref(self) -> int:
        return next(self._refs)

    def attachment(self) -> AttachmentId:
        return AttachmentId(f"{self.incarnation}.{next(self._attachments)}")

    def registration(self, native: str = "n1", **others: Any) -> Register:
        fields: dict[str, Any] = {"agent": None, "application": "codex", **others}
        attachment = fields.pop("attachment", None) or self.attachment()
        return Register(self.ref(), attachment, native=native, **fields)

    def register(self, native: str = "n1", **others: Any) -> Registered:
        (answer,) = self.ask(self.registration(native, **others))
        assert isinstance(answer, Registered), answer
        return answer

    def append(
        self, attachment: str, message_id: str, content: str = "hello", **others: Any
    ) -> Append:
        channel = others.pop("channel", "general")
        payload = Payload(content, **others)
        return Append(
            self.ref(),
            AttachmentId(attachment),
            channel,
            message_id,
            fingerprint(channel, payload),
            payload,
        )

    # ---- the file

    def rows(self, statement: str, *parameters: Any) -> list[Any]:
        """What another program reads from it."""
        with closing(Reader(self.path)) as reader:
            return reader._open().execute(statement, parameters).fetchall()
