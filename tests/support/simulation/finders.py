"""An agent that looks things up: history, search, single messages and memories, lists of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.support.simulation.clients import Arguments, Client, Result
from tests.support.simulation.records import Row, require
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import Truth
from tests.support.simulation.workload import CHANNELS, MEMORIES, MISSING, code_of

LIMITS: Final = (1, 3, 100)


CURIOUS: Final = 0.2
"""How often a message is looked for as soon as it is accepted."""


def nothing() -> None:
    """What follows a look that is out of turn."""


class Finder:
    """One look at a time; each is checked against what was true in the meantime."""

    def __init__(self, client: Client, truth: Truth, scheduler: Scheduler, pace: float) -> None:
        self._client = client
        self._truth = truth
        self._scheduler = scheduler
        self._chance = scheduler.chance(f"finder {client.name}")
        self._pace = 3 * pace
        self._stopped = True
        self._alive = False

    def begin(self) -> None:
        """Goes on until `stop`."""
        self._stopped = False
        if not self._alive:
            self._pause()

    def stop(self) -> None:
        """Looks no more."""
        self._stopped = True

    def _pause(self) -> None:
        self._alive = True
        self._scheduler.after(self._chance.expovariate(1 / self._pace), self._look)

    def _look(self) -> None:
        self._alive = not self._stopped
        if self._stopped:
            return
        (look,) = self._chance.choices(list(LOOKS), list(LOOKS.values()))
        if not look(self):
            self._pause()

    def look_up(self, message_id: str) -> None:
        """A message of ours has just been accepted: at times it is looked for at once."""
        row = self._truth.rows.get(message_id)
        if row is None or self._stopped or self._chance.random() > CURIOUS:
            return
        if self._chance.random() < 0.5:
            self._search(row, nothing)
            return

        def check(result: Result | None, began: float) -> None:
            if result is not None and not self._truth.is_of_the_past(began):
                here = [self._truth.found(message, began) for message in result["messages"]]
                require(bool(here) or row.gone, "not in the history of whoever has sent it", row)

        asked = {"channel": row.channel, "after": row.seq - 1, "before": row.seq + 1}
        self._ask("history", asked, check, nothing)

    def _ask(
        self,
        tool: str,
        arguments: Arguments,
        check: Callable[[Result | None, float], None],
        then: Callable[[], None] | None = None,
    ) -> bool:
        """Has the answer checked, with the time of the question; None where there is none to be
        found. False: no adapter runs."""
        began = self._scheduler.now
        go_on = then or self._pause

        def told(result: Result | None) -> None:
            code = None if result is None else code_of(result, MISSING)
            if result is not None and code in (None, MISSING):
                check(None if code else result, began)
            go_on()

        return self._client.call(tool, arguments, told) is not None

    def _some_row(self) -> Row | None:
        rows = self._truth.rows
        if not rows:
            return None
        names = list(rows)
        recent = names[-10:] if self._chance.random() < 0.5 else names
        return rows[self._chance.choice(recent)]

    # ---- looks

    def history(self) -> bool:
        """A part of a channel."""
        channel = self._chance.choice(CHANNELS)
        arguments: dict[str, Any] = {"channel": channel, "limit": self._chance.choice(LIMITS)}
        top = len(self._truth.streams.get(channel, []))
        for bound in ("before", "after"):
            if self._chance.random() < 0.5:
                arguments[bound] = self._chance.randint(1, top + 1)

        def check(result: Result | None, began: float) -> None:
            if result is not None and not self._truth.is_of_the_past(began):
                self._check_part(arguments, result["messages"], began)

        return self._ask("history", arguments, check)

    def _check_part(self, arguments: Arguments, messages: list[Any], began: float) -> None:
        stream = self._truth.streams.get(arguments["channel"], [])
        seqs = [message["seq"] for message in messages]
        require(len(seqs) <= arguments["limit"], "too long a history", arguments, seqs)
        first = seqs[0] if seqs else 1
        missing = set(range(first, seqs[-1] + 1 if seqs else first)) - set(seqs)
        holes = [seq for seq in sorted(missing) if not stream[seq - 1].gone]
        require(seqs == sorted(set(seqs)) and not holes, "a history with holes", seqs, holes)
        after, before = arguments.get("after", 0), arguments.get("before", len(stream) + 1)
        require(all(after < seq < before for seq in seqs), "out of bounds", arguments, seqs)
        for message in messages:
            self._truth.found(message, began)

    def search(self) -> bool:
        """The word that only one message has: nothing else is found, and it is if it is our own."""
        row = self._some_row()
        return row is not None and self._search(row)

    def _search(self, row: Row, then: Callable[[], None] | None = None) -> bool:
        arguments: Arguments = {"query": row.word.decode(), "limit": self._chance.choice(LIMITS)}
        if self._chance.random() < 0.5:
            arguments["channels"] = [row.channel]
        if self._chance.random() < 0.3:
            arguments["order"] = "relevance"
        mine = row.message_id in self._truth.accepted and row.session == self._client.name
        owed = mine and self._truth.is_current(row)

        def check(result: Result | None, began: float) -> None:
            if result is None:
                return
            found = [_message(each) for each in result["results"]]
            rows = [self._truth.found(message, began) for message in found]
            if not self._truth.is_of_the_past(began):
                wrong = [each for each in rows if each is not row]
                require(not wrong, "found, without the word", row, wrong)
                require(len(rows) <= 1, "found twice", row)
                here = bool(rows) or not owed or not self._truth.is_current(row)
                require(here, "not found by whoever has sent it", row, began)

        return self._ask("search", arguments, check, then)

    def read(self) -> bool:
        """A message by its id."""
        row = self._some_row()
        if row is None:
            return False

        def check(result: Result | None, began: float) -> None:
            if self._truth.is_of_the_past(began):
                return
            if result is None:
                require(not self._truth.is_current(row), "not found, but there", row)
                return
            extra = ("content_length", "next_offset")
            message = {key: value for key, value in result.items() if key not in extra}
            self._truth.found(message, began)

        return self._ask("read", {"message_id": row.message_id}, check)

    def memory(self) -> bool:
        """What a memory is now."""
        if not self._truth.memories:
            return False
        memory_id = self._chance.choice(list(self._truth.memories))

        def check(result: Result | None, began: float) -> None:
            if result is not None:
                self._truth.found(result, began)
            elif not self._truth.is_of_the_past(began):
                deleted = self._truth.memories[memory_id].deleted
                require(deleted, "not found, but there", memory_id)

        return self._ask("memory_get", {"memory_id": memory_id}, check)

    def memories(self) -> bool:
        """The first memories of all."""
        limit = self._chance.choice(LIMITS)

        def check(result: Result | None, began: float) -> None:
            if result is None:
                return
            listed = result["memories"]
            require(len(listed) <= limit, "too long a list", limit, len(listed))
            for message in listed:
                self._truth.found(message, began)

        return self._ask("memory_list", {"channel": MEMORIES, "limit": limit}, check)

    def channels(self) -> bool:
        """All channels."""

        def check(result: Result | None, began: float) -> None:
            if result is None or self._truth.is_of_the_past(began):
                return
            names = [each["name"] for each in result["channels"]]
            require(names == sorted(names), "channels out of order", names)
            require({CHANNELS[0], MEMORIES} <= set(names), "channels are missing", names)

        return self._ask("list_channels", {}, check)

    def people(self) -> bool:
        """Whoever is there, this one among them."""

        def check(result: Result | None, _began: float) -> None:
            names = [] if result is None else [each["agent"] for each in result["agents"]]
            require(len(names) == len(set(names)), "an agent is there twice", names)

        return self._ask("discover", {}, check)


def _message(result: Result) -> Result:
    return {key: value for key, value in result.items() if key != "snippet"}


LOOKS: Final[dict[Callable[[Finder], bool], int]] = {
    Finder.history: 4,
    Finder.search: 4,
    Finder.read: 1,
    Finder.memory: 1,
    Finder.memories: 1,
    Finder.channels: 1,
    Finder.people: 1,
}
"""How often each is chosen."""
