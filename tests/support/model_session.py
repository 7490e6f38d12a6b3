"""A session that drives a real daemon as an adapter does, and checks what it is handed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.support.daemon import Daemon, wait
from tests.support.model_bus import IDLE, SLACK, Held, ModelBus
from tests.support.peers import Attached, Peer, RefusedError

PASSING = {"recovering", "unavailable", "session_already_connected"}
BOUND = 60.0


class ModelSession:
    """One session of the application `tests`: its connection, what it holds, when it was active."""

    def __init__(self, daemon: Daemon, model: ModelBus, name: str) -> None:
        self._daemon = daemon
        self._model = model
        self.name = name
        self._attached: Attached | None = None
        self._subscriptions: dict[int, str] = {}
        self._held: dict[str, Held] = {}
        self._confirmed: dict[str, int] = {}
        self._handed: dict[str, int] = {}
        self._active = 0.0
        self._limits: dict[str, tuple[int, int]] = {}
        """Of channels whose cursor ran out: what was confirmed of it, and what was handed off."""
        self._farewells: dict[str, tuple[int, int, int]] = {}
        """Those told of under this claim: subscription, position to report, where the cursor is."""
        self._acknowledged: set[int] = set()
        self.forget()

    def forget(self) -> None:
        """The bus is another."""
        self.drop()
        self._confirmed, self._handed, self._limits = {}, {}, {}
        self._acknowledged = set()

    def drop(self) -> None:
        """The connection breaks; what is held was handed off to nobody."""
        if self._attached is not None:
            self._attached.peer.close()
        self._attached = None
        self._held, self._farewells = {}, {}

    # asking

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer, asked for again and again where something is away for the moment."""
        deadline = time.monotonic() + BOUND
        while True:
            try:
                return self.attached().call(method, **params)
            except RefusedError as error:
                if error.code == "stale_attachment":
                    self.drop()
                elif error.code not in PASSING or time.monotonic() > deadline:
                    raise
            except (OSError, EOFError):
                self.drop()
                assert time.monotonic() < deadline, f"{method} was never answered"
            time.sleep(0.02)

    def history(self, channel: str) -> list[dict[str, Any]]:
        """All that is in a channel, page by page."""
        seen: list[dict[str, Any]] = []
        while True:
            page = self.page(channel, seen[-1]["seq"] if seen else 0)
            seen += page["messages"]
            if not page["more"]:
                return seen

    def page(self, channel: str, after: int) -> dict[str, Any]:
        """What follows a position."""
        return self.ask("history", channel=channel, after=after, limit=100)

    def begin(self, method: str, **params: Any) -> None:
        """A request whose answer nobody waits for."""
        attached = self.attached()
        with suppress(OSError):
            attached.peer.request(method, attachment=attached.id, **params)

    def attached(self, *, again: bool = True) -> Attached:
        """Its attachment; a new one where there is none."""
        if self._attached is None:
            found: list[Attached] = []
            assert wait(lambda: self._try_to_attach(found, again), BOUND)
            self._attached = found[0]
            self._take_up(found[0].registered, again=again)
        return self._attached

    def _try_to_attach(self, found: list[Attached], again: bool) -> bool:
        peer: Peer | None = None
        try:
            peer = self._daemon.peer()
            found.append(peer.attach(self.name, agent="Sam", again=again))
        except (OSError, EOFError, RefusedError):
            if peer is not None:
                peer.close()
            return False
        return True

    def _take_up(self, registered: dict[str, Any], *, again: bool) -> None:
        idle = self._model.now - self._active
        found = {each["channel"]: each for each in registered["subscriptions"]}
        self._subscriptions = {each["subscription"]: name for name, each in found.items()}
        for name, each in found.items():
            position = each["position"]
            if self._confirmed.get(name) is not None and registered["resumed"]:
                assert idle < IDLE + SLACK, "a cursor that has run out was restored"
                self._check_cursor(name, position, self._confirmed[name], self._handed[name])
            self._confirmed[name] = self._handed[name] = position
            self._held[name] = Held(position, position)
        for name in set(self._confirmed) - set(found):
            assert idle > IDLE - SLACK, f"the cursor of {name} is gone"
            self._limits[name] = (self._confirmed.pop(name), self._handed.pop(name))
        if not registered["resumed"] or not again:
            self._active = self._model.now

    def _check_cursor(self, channel: str, position: int, confirmed: int, handed: int) -> None:
        """Between what was confirmed and what was handed off, own messages aside."""
        assert position >= confirmed, "a cursor went back"
        passed = self._model.due(self.name, channel, handed)
        assert not any(seq <= position for seq in passed), "a cursor passed what nobody was handed"

    # receiving

    def receive(self, *, report: bool, acknowledge: bool = False) -> None:
        """Waits for all there is, checks it, and hands it off or keeps it. Cursors that ran out
        are taken note of, or merely replaced."""
        self._renew()
        if acknowledge:
            self._acknowledge()
        deadline = time.monotonic() + BOUND
        while not self._drained():
            assert time.monotonic() < deadline, f"{self.name} waits for messages: {self._held}"
            for channel in ("general", "memory"):
                if channel not in self._subscriptions.values():
                    self._subscribe(channel)
            self._heartbeat()
        for channel, held in self._held.items():
            self._model.check(self.name, channel, held)
        if report:
            self._report()

    def _acknowledge(self) -> None:
        """Reports the cursors that ran out, so that they are forgotten."""
        self._heartbeat()
        attached, farewells = self._attached, dict(self._farewells)
        if attached is None or not farewells:
            return
        positions = [(number, through) for number, through, _ in farewells.values()]
        try:
            attached.call("delivered", epoch=attached.epoch, positions=positions)
        except (OSError, EOFError, RefusedError):
            self.drop()  # it is told of again, or not, if this counted
            return
        self._note_all(attached)  # it may have been told of again until then
        for channel, (number, _, _) in farewells.items():
            self._acknowledged.add(number)
            self._farewells.pop(channel, None)
            self._limits.pop(channel, None)

    def _renew(self) -> None:
        alive = {each["subscription"] for each in self.ask("renew")["subscriptions"]}
        for number in set(self._subscriptions) - alive:
            self._run_out(number)
        self._active = self._model.now

    def _run_out(self, number: int) -> None:
        idle = self._model.now - self._active
        assert idle > IDLE - SLACK, f"a cursor ran out after {idle} s"
        channel = self._subscriptions.pop(number)
        self._held.pop(channel, None)
        self._limits[channel] = (self._confirmed.pop(channel), self._handed.pop(channel))

    def _bid_farewell(self, note: dict[str, Any]) -> None:
        """A cursor stands where it was when it ran out, and is told of until that is known."""
        number, (told,) = note["subscription"], note["expired"]
        assert number not in self._acknowledged, "what is known was told again"
        if number in self._subscriptions:
            self._run_out(number)
        channel, position = told["channel"], told["position"]
        if channel in self._limits:
            self._check_cursor(channel, position, *self._limits[channel])
            self._farewells[channel] = (number, note["through"], position)

    def _subscribe(self, channel: str) -> None:
        made = self.ask("subscribe", channel=channel)
        if channel in self._subscriptions.values():
            return  # it was attached anew meanwhile
        self._subscriptions[made["subscription"]] = channel
        position = made["position"]
        self._check_expired_from(channel, made.get("expired_from"))
        self._confirmed[channel] = self._handed[channel] = position
        self._held[channel] = Held(position, position)

    def _check_expired_from(self, channel: str, position: int | None) -> None:
        limits, farewell = self._limits.pop(channel, None), self._farewells.pop(channel, None)
        if farewell is not None:
            assert position in (farewell[2], None)  # None: asked twice, the answer was lost
        if position is not None:
            assert limits is not None, f"{channel} did not run out, or that was known"
            self._check_cursor(channel, position, *limits)

    def _heartbeat(self) -> None:
        attached = self.attached()
        try:
            alive = attached.peer.call("heartbeat")["attachments"]
        except (OSError, EOFError, RefusedError):
            alive = []
        if attached.id not in alive:
            self.drop()
            return
        self._note_all(attached)
        time.sleep(0.01)

    def _drained(self) -> bool:
        if self._attached is None:
            return False
        for channel, held in self._held.items():
            if any(seq > held.through for seq in self._model.due(self.name, channel, 0)):
                return False
        return set(self._held) == {"general", "memory"}

    def _note_all(self, attached: Attached) -> None:
        while attached.peer.notes:
            note = attached.peer.notes.popleft()
            handler: Callable[[dict[str, Any]], None] | None = {
                "deliver": self._deliver,
                "epoch": self._epoch,
                "revise": self._revise,
                "revoke": self._revoke,
            }.get(note["method"])
            if handler is not None:
                handler(note["params"])

    def _deliver(self, note: dict[str, Any]) -> None:
        if note.get("expired"):
            self._bid_farewell(note)
        channel = self._subscriptions.get(note["subscription"])
        if channel is None:
            return
        assert self._attached is not None
        self._attached.epoch = note["epoch"]
        held = self._held[channel]
        held.gaps += note.get("gaps", [])
        for message in note["messages"]:
            assert message["seq"] > held.through, "something came twice, or out of order"
            held.messages[message["seq"]] = message
        held.through = note["through"]

    def _epoch(self, note: dict[str, Any]) -> None:
        assert self._attached is not None
        self._attached.epoch = note["epoch"]
        for channel in self._held:
            position = self._confirmed[channel]
            self._held[channel] = Held(position, position)

    def _revise(self, note: dict[str, Any]) -> None:
        channel = self._subscriptions.get(note["subscription"])
        if channel is not None and note["seq"] in self._held[channel].messages:
            self._held[channel].messages[note["seq"]] = note["message"]

    def _revoke(self, note: dict[str, Any]) -> None:
        channel = self._subscriptions.get(note["subscription"])
        if channel is not None:
            self._held[channel].messages.pop(note["seq"], None)

    def _report(self) -> None:
        attached = self._attached
        assert attached is not None
        numbers = {name: number for number, name in self._subscriptions.items()}
        positions = [(numbers[name], held.through) for name, held in self._held.items()]
        self._handed = {name: held.through for name, held in self._held.items()}
        try:
            attached.call("delivered", epoch=attached.epoch, positions=positions)
        except (OSError, EOFError, RefusedError):
            self.drop()  # the next attachment's cursors tell whether it counted
            return
        for name, held in self._held.items():
            self._confirmed[name] = held.through
            self._held[name] = Held(held.through, held.through)
