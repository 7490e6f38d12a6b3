"""A real daemon, several sessions, anything in any order: what it hands on is what the model says.

Short by default; `AGENTBUS_STATEFUL_EXAMPLES=200 pytest tests/stateful/test_bus.py` runs long.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support.daemon import Daemon
from tests.support.model_bus import HOUR, RECEIPT, SLACK, Entry, ModelBus
from tests.support.model_session import ModelSession
from tests.support.peers import RefusedError

EXAMPLES = int(os.environ.get("AGENTBUS_STATEFUL_EXAMPLES", "2"))
LONG = "AGENTBUS_STATEFUL_EXAMPLES" in os.environ
STEPS = 40 if LONG else 16
PHASES = [Phase.generate, Phase.shrink] if LONG else [Phase.generate]
"""Each step of shrinking is a daemon of its own, so it is for long runs alone."""

NAMES = ("ann", "bob", "cid")
FAST = {
    "send_messages_per_second": 10_000,
    "send_kib_per_second": 65_536,
    "cleanup_interval_seconds": 5,
}

who = st.sampled_from(NAMES)
picks = st.integers(0, 99)


class Bus(RuleBasedStateMachine):
    """Each rule leaves the model knowing exactly what the bus has accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.daemon = Daemon(**FAST)
        self.clock = Path(self.daemon.directory, "clock.json")
        self.clock.write_text("{}")
        asked = msgspec.json.encode({"clock_file": str(self.clock)}).decode()
        self.daemon.environment["AGENTBUS_TEST"] = asked
        self.daemon.start()
        self.model = ModelBus()
        self.sessions = {name: ModelSession(self.daemon, self.model, name) for name in NAMES}
        self.count = 0
        for session in self.sessions.values():
            session.attached()

    def teardown(self) -> None:
        try:
            for session in self.sessions.values():
                session.receive(report=True)
            self.check_rows()
        finally:
            for session in self.sessions.values():
                session.drop()
            self.daemon.__exit__(None, None, None)

    def check_rows(self) -> None:
        """At most one row for each id, in order, and nothing young is missing."""
        after, seen = 0, []
        while True:
            page = self.sessions["ann"].ask("history", channel="general", after=after, limit=100)
            seen += page["messages"]
            if not page["more"]:
                break
            after = seen[-1]["seq"]
        entries = self.model.channels["general"]
        assert [message["message_id"] for message in seen] == [
            entries[message["seq"]].message_id for message in seen
        ]
        missing = set(entries) - {message["seq"] for message in seen}
        assert not [seq for seq in missing if self.model.must_be_there(entries[seq])]

    def new_id(self) -> str:
        self.count += 1
        return f"op-{self.count}"

    # what sessions do

    @rule(name=who, channel=st.sampled_from(["general", "general", "memory"]))
    def send(self, name: str, channel: str) -> None:
        message_id = self.new_id()
        self.settle(name, channel=channel, message_id=message_id, content=f"says {message_id}")

    def settle(self, name: str, **params: Any) -> None:
        sent = self.sessions[name].ask("send", **params)
        memory = sent.get("memory_id") or ""
        entry = Entry(
            sent["seq"], params["message_id"], name, params["content"], self.model.now, memory
        )
        self.model.accept(params["channel"], entry)

    @precondition(lambda self: self.model.channels["general"])
    @rule(pick=picks)
    def send_again(self, pick: int) -> None:
        entries = list(self.model.channels["general"].values())
        entry = entries[pick % len(entries)]
        if self.model.now - entry.at > RECEIPT - SLACK:
            return
        session = self.sessions[entry.sender]
        params = {"channel": "general", "message_id": entry.message_id, "content": entry.content}
        sent = session.ask("send", **params)
        assert (sent["seq"], sent["duplicate"]) == (entry.seq, True)
        with pytest.raises(RefusedError) as refusal:
            session.ask("send", **{**params, "content": "something else"})
        assert refusal.value.code == "operation_id_conflict"

    @precondition(lambda self: self.model.memories())
    @rule(name=who, pick=picks)
    def edit(self, name: str, pick: int) -> None:
        memories = self.model.memories()
        entry = memories[pick % len(memories)]
        content = f"{entry.message_id} at {entry.revision + 1}"
        edited = self.sessions[name].ask(
            "memory.edit", memory_id=entry.memory_id, operation_id=self.new_id(), content=content
        )
        assert edited["replaced_revision"] == entry.revision
        entry.revision += 1
        entry.content = content
        assert edited["revision"] == entry.revision

    @precondition(lambda self: self.model.memories())
    @rule(name=who, pick=picks)
    def delete(self, name: str, pick: int) -> None:
        memories = self.model.memories()
        entry = memories[pick % len(memories)]
        params = {"memory_id": entry.memory_id, "operation_id": self.new_id()}
        assert self.sessions[name].ask("memory.delete", **params)["deleted_revision"] == (
            entry.revision
        )
        entry.content = None
        with pytest.raises(RefusedError) as refusal:
            self.sessions[name].ask("memory.get", memory_id=entry.memory_id)
        assert refusal.value.code == "not_found"

    @rule(name=who)
    def list_memories(self, name: str) -> None:
        found = self.sessions[name].ask("memory.list", channel="memory", limit=1000)["memories"]
        assert [(each["memory_id"], each["content"]) for each in found] == [
            (entry.memory_id, entry.content) for entry in self.model.memories()
        ]

    @rule(name=who)
    def receive(self, name: str) -> None:
        self.sessions[name].receive(report=True)

    @rule(name=who)
    def receive_and_die(self, name: str) -> None:
        self.sessions[name].receive(report=False)
        self.sessions[name].drop()

    @rule(name=who, again=st.booleans())
    def reconnect(self, name: str, again: bool) -> None:
        self.sessions[name].drop()
        self.sessions[name].attached(again=again)

    # what happens to the bus

    @rule(process=st.sampled_from(["writer", "projector", "gateway", "redis"]), name=who)
    def kill_during_a_send(self, process: str, name: str) -> None:
        message_id = self.new_id()
        params = {"channel": "general", "message_id": message_id, "content": f"says {message_id}"}
        self.sessions[name].attached()
        pid = self.daemon.pid(process)
        self.sessions[name].begin("send", **params)
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
        self.settle(name, **params)

    @rule()
    def restart(self) -> None:
        self.daemon.stop()
        self.daemon.start()

    @rule(hours=st.sampled_from([1, 30, 80, 200]))
    def hours_pass(self, hours: int) -> None:
        self.model.now += hours * HOUR
        shift = {"wall": self.model.now, "monotonic": self.model.now}
        new = self.clock.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(shift))
        new.replace(self.clock)

    @precondition(lambda self: self.count > 8)
    @rule()
    def reset(self) -> None:
        before = self.daemon.status()["instance"]
        with self.daemon.peer() as peer:
            peer.call("reset")
        self.daemon.wait_until(
            lambda status: status["instance"] != before and status["state"] == "ready"
        )
        for entries in self.model.channels.values():
            entries.clear()
        for session in self.sessions.values():
            session.forget()
            session.attached()


@pytest.mark.timeout(60 + 60 * EXAMPLES)
def test_whatever_happens_the_bus_does_what_the_model_says() -> None:
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=not LONG,
        suppress_health_check=list(HealthCheck),
        phases=PHASES,
    )
    run_state_machine_as_test(Bus, settings=chosen)
