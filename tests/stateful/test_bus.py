"""A real daemon, several sessions, anything in any order: what it hands on is what the model says.

Short by default, in a minute at most. Long, as long as one likes, and shrinking what it finds:

    AGENTBUS_STATEFUL_EXAMPLES=200 pytest tests/stateful/test_bus.py

The model knows: nothing accepted is lost unless a gap says exactly so; each channel is in order;
there is at most one row for an operation's id; what was replaced, deleted or evicted is never
served again; no cursor passes what was not handed over.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support.daemon import Daemon, wait
from tests.support.model_adapter import ModelAdapter
from tests.support.model_bus import HOUR, RECEIPT, SLACK, Entry, ModelBus
from tests.support.model_session import ModelSession
from tests.support.peers import RefusedError

EXAMPLES = int(os.environ.get("AGENTBUS_STATEFUL_EXAMPLES", "2"))
LONG = "AGENTBUS_STATEFUL_EXAMPLES" in os.environ
STEPS = 40 if LONG else 12
PHASES = [Phase.generate, Phase.shrink] if LONG else [Phase.generate]
"""Each step of shrinking is a daemon of its own, so it is for long runs alone. They print all that
they do, since what depends on times is not found a second time."""

NAMES = ("ann", "bob", "cid")
TIGHT = {
    "send_messages_per_second": 10_000,
    "send_kib_per_second": 65_536,
    "cleanup_interval_seconds": 5,
    "redis_budget_mib": 64,
    "sqlite_budget_mib": 64,
    "max_message_kib": 1024,
    "prefetch_mib": 64,
}
LARGE = 700 << 10
"""Bytes of a message of which the budget holds about 36."""

CHILDREN = ("writer", "projector", "gateway", "indexer", "redis")
MOST_DEATHS = 3
"""Of one process in a minute; more than five stop the daemon."""

who = st.sampled_from(NAMES)
picks = st.integers(0, 99)
children = st.sampled_from(CHILDREN)


class Bus(RuleBasedStateMachine):
    """Each rule leaves the model knowing exactly what the bus has accepted."""

    filled = 0
    """Large messages that are there from the start."""

    def __init__(self) -> None:
        super().__init__()
        self.daemon = Daemon(**TIGHT)
        self.clock = self.daemon.clock()
        self.daemon.start()
        self.model = ModelBus()
        self.sessions = {name: ModelSession(self.daemon, self.model, name) for name in NAMES}
        self.adapter = ModelAdapter(self.daemon, self.model, "dee")
        self.count = 0
        self.deaths: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=MOST_DEATHS))
        try:
            for session in self.sessions.values():
                session.attached()
            self.adapter.follow()
            self.flood("ann", self.filled)
        except BaseException:
            self.end()
            raise

    def teardown(self) -> None:
        try:
            for session in self.sessions.values():
                session.receive(report=True)
            self.adapter.drain()
            self.check_rows()
        finally:
            self.end()

    def end(self) -> None:
        for session in self.sessions.values():
            session.drop()
        self.adapter.kill()
        self.daemon.__exit__(None, None, None)

    def check_rows(self) -> None:
        """At most one row for each id, in order, and nothing young is missing."""
        seen: list[dict[str, Any]] = []

        def is_all() -> bool:
            """Whether the newest of all sessions are visible, and nothing was evicted between the
            first page and the last."""
            seen[:] = self.sessions["ann"].history("general")
            first = self.sessions["ann"].page("general", 0)["messages"][:1]
            whole = [each["seq"] for each in first] == [each["seq"] for each in seen[:1]]
            last = seen[-1]["seq"] if seen else 0
            return whole and not self.model.is_visible_above(last)

        assert wait(is_all)
        self.model.check_stored(seen)

    def new_id(self) -> str:
        self.count += 1
        return f"op-{self.count}"

    # what sessions do

    @rule(name=who, channel=st.sampled_from(["general", "general", "memory"]))
    def send(self, name: str, channel: str) -> None:
        self.settle(self.sessions[name], channel, self.new_id())

    @rule(name=who, count=st.integers(1, 8))
    def flood(self, name: str, count: int) -> None:
        """Large messages; in the end the oldest have to go."""
        for _ in range(count):
            self.settle(self.sessions[name], "general", self.new_id(), "x" * LARGE)

    @rule(channel=st.sampled_from(["general", "memory"]))
    def send_by_adapter(self, channel: str) -> None:
        self.settle(self.adapter, channel, self.new_id())

    def settle(
        self, session: ModelSession | ModelAdapter, channel: str, message_id: str, more: str = ""
    ) -> None:
        content = f"says {message_id} {more}"
        sent = session.ask("send", channel=channel, message_id=message_id, content=content)
        memory = sent.get("memory_id") or ""
        entry = Entry(sent["seq"], message_id, session.name, content, self.model.now, memory)
        self.model.accept(channel, entry)

    @precondition(lambda self: self.model.channels["general"])
    @rule(pick=picks)
    def send_again(self, pick: int) -> None:
        entries = list(self.model.channels["general"].values())
        entry = entries[pick % len(entries)]
        if self.model.now - entry.at > RECEIPT - SLACK:
            return
        session = self.sessions.get(entry.sender) or self.adapter
        params = {"channel": "general", "message_id": entry.message_id, "content": entry.content}
        sent = session.ask("send", **params)
        assert (sent["seq"], sent["duplicate"]) == (entry.seq, True)
        if isinstance(session, ModelSession):
            with pytest.raises(RefusedError) as refusal:
                session.ask("send", **{**params, "content": "something else"})
            assert refusal.value.code == "operation_id_conflict"

    @precondition(lambda self: self.model.memories())
    @rule(name=who, pick=picks)
    def edit(self, name: str, pick: int) -> None:
        self.settle_edit(name, self.memory(pick), self.new_id())

    def memory(self, pick: int) -> Entry:
        memories = self.model.memories()
        return memories[pick % len(memories)]

    def settle_edit(self, name: str, entry: Entry, operation: str) -> None:
        edited = self.sessions[name].ask("memory.edit", **self.edition(entry, operation))
        assert edited["replaced_revision"] == entry.revision
        entry.content = self.edition(entry, operation)["content"]
        entry.revision += 1
        assert edited["revision"] == entry.revision

    def edition(self, entry: Entry, operation: str) -> dict[str, str]:
        content = f"says {entry.message_id} at {entry.revision + 1}"
        return {"memory_id": entry.memory_id, "operation_id": operation, "content": content}

    @precondition(lambda self: self.model.memories())
    @rule(name=who, pick=picks)
    def delete(self, name: str, pick: int) -> None:
        entry = self.memory(pick)
        self.settle_deletion(name, entry, self.new_id())
        with pytest.raises(RefusedError) as refusal:
            self.sessions[name].ask("memory.get", memory_id=entry.memory_id)
        assert refusal.value.code == "not_found"

    def settle_deletion(self, name: str, entry: Entry, operation: str) -> None:
        params = {"memory_id": entry.memory_id, "operation_id": operation}
        deleted = self.sessions[name].ask("memory.delete", **params)
        assert deleted["deleted_revision"] == entry.revision
        entry.content = None

    @rule(name=who)
    def list_memories(self, name: str) -> None:
        current = {entry.seq: (entry.memory_id, entry.content) for entry in self.model.memories()}

        def all_are_there() -> bool:
            """Own ones at once, those of others soon; all as they are now."""
            asked = self.sessions[name].ask("memory.list", channel="memory", limit=1000)
            found = {
                each["seq"]: (each["memory_id"], each["content"]) for each in asked["memories"]
            }
            assert list(found) == sorted(found)
            assert found.items() <= current.items(), "an obsolete revision was listed"
            missing = [self.model.channels["memory"][seq] for seq in set(current) - set(found)]
            assert name not in [entry.sender for entry in missing]
            return not missing

        assert wait(all_are_there)

    @rule(name=who)
    def search_memories(self, name: str) -> None:
        """Own ones are found at once, those of others soon; all as they are now."""
        current = {entry.seq: entry for entry in self.model.memories()}

        def all_are_there() -> bool:
            found = self.found(name, "says", "memory")
            for seq, content in found.items():
                assert content == current[seq].content, "an obsolete revision was found"
            missing = [entry for seq, entry in current.items() if seq not in found]
            assert name not in [entry.sender for entry in missing]
            return not missing

        assert wait(all_are_there)

    @precondition(lambda self: self.model.channels["general"])
    @rule(name=who, pick=picks)
    def search(self, name: str, pick: int) -> None:
        """For a message that may have gone; nothing that has gone is found."""
        entries = list(self.model.channels["general"].values())
        entry = entries[-1 - pick % len(entries)]

        def is_there() -> bool:
            found = self.found(name, f'"says {entry.message_id}"', "ordinary")
            assert all(seq >= self.model.floor for seq in found), "what was gone is found"
            there = entry.seq in found or not self.model.must_be_there(entry)
            assert there or name != entry.sender
            return there

        assert wait(is_there)

    def found(self, name: str, query: str, kind: str) -> dict[int, str]:
        """Positions and contents of what a search finds."""
        asked = self.sessions[name].ask("search", query=query, kind=kind, limit=1000)
        messages = [each["message"] for each in asked["results"]]
        return {message["seq"]: message["content"] for message in messages}

    @rule()
    def read_history(self) -> None:
        self.check_rows()

    @rule(name=who, acknowledge=st.booleans())
    def receive(self, name: str, acknowledge: bool) -> None:
        self.sessions[name].receive(report=True, acknowledge=acknowledge)

    @rule(name=who)
    def receive_and_die(self, name: str) -> None:
        self.sessions[name].receive(report=False)
        self.sessions[name].drop()

    @rule(name=who, again=st.booleans())
    def reconnect(self, name: str, again: bool) -> None:
        self.sessions[name].drop()
        self.sessions[name].attached(again=again)

    # what an agent behind an adapter does

    @rule(most=st.sampled_from([1, 3, 100]))
    def recv(self, most: int) -> None:
        self.adapter.receive(most)

    @rule(most=st.sampled_from([1, 3, 100]), at_once=st.booleans())
    def cancel_a_recv(self, most: int, at_once: bool) -> None:
        self.adapter.receive_and_cancel(most, at_once=at_once)

    @rule()
    def drain_the_adapter(self) -> None:
        self.adapter.drain()

    @rule(orderly=st.booleans())
    def adapter_ends(self, orderly: bool) -> None:
        if orderly:
            self.adapter.end()
        else:
            self.adapter.kill()

    # what happens to the bus

    def may_die(self, process: str) -> bool:
        """Not so often that the daemon gives up."""
        deaths, now = self.deaths[process], time.monotonic()
        if len(deaths) == MOST_DEATHS and now - deaths[0] < 60:
            return False
        deaths.append(now)
        return True

    def kill(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)

    @rule(process=children, name=who)
    def kill_during_a_send(self, process: str, name: str) -> None:
        if not self.may_die(process):
            return
        message_id, session = self.new_id(), self.sessions[name]
        content = f"says {message_id} "
        pid = self.daemon.pid(process)
        session.begin("send", channel="general", message_id=message_id, content=content)
        self.kill(pid)
        self.settle(session, "general", message_id)

    @precondition(lambda self: self.model.memories())
    @rule(process=children, name=who, pick=picks, deletes=st.booleans())
    def kill_during_a_change(self, process: str, name: str, pick: int, deletes: bool) -> None:
        if not self.may_die(process):
            return
        entry, operation = self.memory(pick), self.new_id()
        pid, asked = self.daemon.pid(process), self.edition(entry, operation)
        if deletes:
            del asked["content"]
        self.sessions[name].begin("memory.delete" if deletes else "memory.edit", **asked)
        self.kill(pid)
        settle = self.settle_deletion if deletes else self.settle_edit
        settle(name, entry, operation)

    @rule(process=children, name=who)
    def kill_during_a_recv(self, process: str, name: str) -> None:
        if not self.may_die(process):
            return
        message_id, pid = self.new_id(), self.daemon.pid(process)

        def happens() -> None:
            self.kill(pid)
            self.settle(self.sessions[name], "general", message_id)

        self.adapter.receive_meanwhile(happens)

    @rule()
    def kill_the_supervisor(self) -> None:
        self.kill(self.daemon.pid("supervisor"))
        self.daemon.start()

    @rule()
    def restart(self) -> None:
        self.daemon.stop()
        self.daemon.start()

    @rule(hours=st.sampled_from([1, 30, 80, 200]))
    def hours_pass(self, hours: int) -> None:
        self.model.now += hours * HOUR
        self.clock.jump(hours * HOUR, hours * HOUR)

    @precondition(lambda self: self.count > 8)
    @rule()
    def reset(self) -> None:
        before = self.daemon.status()["instance"]
        with self.daemon.peer() as peer:
            peer.call("reset")
        self.daemon.wait_until(
            lambda status: status["instance"] != before and status["state"] == "ready"
        )
        self.model.forget()
        for session in self.sessions.values():
            session.forget()
            session.attached()
        self.adapter.forget()
        self.adapter.follow()


class NearlyFull(Bus):
    """A bus that has to make room for nearly everything."""

    filled = 44


@pytest.mark.parametrize("kind", [Bus, NearlyFull])
@pytest.mark.timeout((60 + 60 * EXAMPLES) * (10 if LONG else 1))
def test_whatever_happens_the_bus_does_what_the_model_says(
    kind: type[RuleBasedStateMachine],
) -> None:
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=not LONG,
        suppress_health_check=list(HealthCheck),
        phases=PHASES,
        verbosity=Verbosity.verbose if LONG else Verbosity.normal,
    )
    run_state_machine_as_test(kind, settings=chosen)
