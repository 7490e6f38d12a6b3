"""What people who use tools like this run into (rows of users-ask), each as a whole kind, at the
daemon's socket: where a connection can be cut between any two bytes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbus.writer.directory import SESSIONS
from tests.support.daemon import Daemon, wait
from tests.support.peers import Attached, Peer, RefusedError
from tests.support.stdio import Adapter
from tests.system.bus.conftest import FAST

HOUR = 3600.0


def history(session: Attached, channel: str = "general") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = session.call("history", channel=channel, after=0)["messages"]
    return found


# 6: the answer is lost, not the message


def cut(bus: Daemon, method: str, **params: Any) -> None:
    """Asks as the session `cut`, and hangs up without reading the answer."""
    peer = bus.peer()
    sender = peer.attach("cut")
    peer.request(method, attachment=sender.id, **params)
    peer.close()


def again(bus: Daemon, method: str, **params: Any) -> dict[str, Any]:
    """The answer to the same on another connection, as soon as the first one has been let go."""
    with bus.peer() as peer:
        return claim(peer, "cut").call(method, **params)


def claim(peer: Peer, session: str) -> Attached:
    found: list[Attached] = []

    def attached() -> bool:
        try:
            found.append(peer.attach(session))
        except RefusedError as error:
            if error.code != "session_already_connected":
                raise
        return bool(found)

    assert wait(attached)
    return found[0]


def test_row_6_a_connection_cut_between_commit_and_answer_costs_nothing(bus: Daemon) -> None:
    with bus.peer() as peer:
        other = peer.attach("other")
        for number in range(20):
            sent = {"channel": "general", "message_id": f"row6-{number}", "content": f"{number}"}
            cut(bus, "send", **sent)
            if number % 2:
                assert wait(lambda n=number: history(other)[-1]["content"] == f"{n}")
            result = again(bus, "send", **sent)
            key = f"row6-{number}"
            assert wait(lambda k=key: any(each["message_id"] == k for each in history(other)))
            (row,) = [each for each in history(other) if each["message_id"] == key]
            assert (row["seq"], row["sent_at"]) == (result["seq"], result["sent_at"])
            assert result["duplicate"] or number % 2 == 0


def test_row_6_a_change_of_a_memory_whose_answer_was_lost_is_made_once(bus: Daemon) -> None:
    with bus.peer() as peer:
        other = peer.attach("other")
        memory = other.send("memory", "row6-memory", "one")["memory_id"]

        def current() -> dict[str, Any]:
            return {m["memory_id"]: m for m in listed(other)}.get(memory, {})

        edit = {"memory_id": memory, "operation_id": "row6-edit", "content": "two"}
        cut(bus, "memory.edit", **edit)
        assert wait(lambda: current()["content"] == "two")
        result = again(bus, "memory.edit", **edit)
        assert (result["revision"], result["replaced_revision"], result["duplicate"]) == (
            2,
            1,
            True,
        )
        assert current()["revision"] == 2
        delete = {"memory_id": memory, "operation_id": "row6-delete"}
        cut(bus, "memory.delete", **delete)
        assert wait(lambda: current() == {})
        result = again(bus, "memory.delete", **delete)
        assert (result["deleted_revision"], result["duplicate"]) == (2, True)


def listed(session: Attached) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = session.call("memory.list", channel="memory")["memories"]
    return found


# 7: whatever has changed, what was accepted stays accepted


@pytest.fixture
def place() -> Iterator[Daemon]:
    """A place in which nothing runs yet, whose settings and clock can be changed."""
    with Daemon(**FAST, cleanup_interval_seconds=5) as daemon:
        clock = {"clock_file": str(Path(daemon.directory, "clock.json"))}
        daemon.environment["AGENTBUS_TEST"] = json.dumps(clock)
        yield daemon


def change(bus: Daemon, **settings: Any) -> None:
    path = Path(bus.config_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def set_clock(bus: Daemon, wall: float, monotonic: float = 0.0) -> None:
    shift = Path(bus.directory, "clock.new")
    shift.write_text(json.dumps({"wall": wall, "monotonic": monotonic}))
    shift.rename(Path(bus.directory, "clock.json"))


DENY = [sys.executable, "-Ic", 'print(\'{"decision": "deny"}\')']


def test_row_7_a_retry_gets_the_original_whatever_has_changed_since(place: Daemon) -> None:
    sent = {"channel": "general", "message_id": "m", "content": "x" * 5000}
    place.start()
    with place.peer() as peer:
        sender = peer.attach("sender")
        first = sender.call("send", **sent)
        memory = sender.send("memory", "k", "y" * 5000)["memory_id"]
        edit = {"memory_id": memory, "operation_id": "e", "content": "z" * 5000}
        edited = sender.call("memory.edit", **edit)
        delete = {"memory_id": memory, "operation_id": "d"}
        deleted = sender.call("memory.delete", **delete)
    place.stop()
    change(place, inspection_command=DENY, max_message_kib=1, send_messages_per_second=1)
    change(place, message_retention_hours=24)
    set_clock(
        place, 25 * HOUR, 25 * HOUR
    )  # the message is older than the retention, its receipt is not
    place.start()
    with place.peer() as peer:
        sender = peer.attach("sender")
        assert wait(lambda: history(sender) == [])
        with pytest.raises(RefusedError) as refused:
            sender.send("general", "n", "is denied, and uses up the rate")
        assert refused.value.code == "inspection_rejected"
        for _ in range(3):
            assert sender.call("send", **sent) == {**first, "duplicate": True}
            assert sender.call("memory.edit", **edit) == {**edited, "duplicate": True}
            assert sender.call("memory.delete", **delete) == {**deleted, "duplicate": True}
        assert history(sender) == []
        assert listed(sender) == []
        for other in ({"content": "x"}, {"type": "other"}, {"channel": "memory"}):
            with pytest.raises(RefusedError) as refused:
                sender.call("send", **{**sent, **other})
            assert refused.value.code == "operation_id_conflict"
        stranger = peer.attach("stranger")
        with pytest.raises(RefusedError) as refused:
            stranger.call("send", **sent)
        assert refused.value.code == "operation_id_conflict"


# 16: who an agent is


def test_row_16_a_thousand_restarts_are_one_agent_and_one_session(bus: Daemon) -> None:
    of = {"repository": "row16", "repository_root": "/src/row16"}
    names = set()
    with bus.peer() as peer:
        for number in range(1000):
            attached = peer.attach("row 16", **of)
            assert attached.registered["resumed"] == (number > 0)
            names.add((attached.registered["agent"], attached.registered["display_name"]))
            attached.call("release")
        ((agent, name),) = names
        assert agent == name
        attached = peer.attach("row 16", **of)
        (found,) = attached.call("discover", agent=agent)["agents"]
        assert len(found["sessions"]) == 1


def test_row_16_a_thousand_fresh_conversations_are_one_agent_and_a_bounded_list(
    bus: Daemon,
) -> None:
    of = {"repository": "fresh16", "repository_root": "/src/fresh16"}
    with bus.peer() as peer:
        before = len(peer.attach("before").call("discover")["agents"])
        names = set()
        for number in range(1000):
            attached = peer.attach(f"fresh {number}", **of)
            names.add((attached.registered["agent"], attached.registered["display_name"]))
            attached.call("release")
        ((agent, _),) = names
        last = peer.attach("fresh 999", **of)
        everybody = last.call("discover")["agents"]
        assert len(everybody) == before + 1
        (found,) = [each for each in everybody if each["agent"] == agent]
        assert len(found["sessions"]) == SESSIONS
        assert found["sessions"][0]["session"] == "fresh 999"
    status = bus.status()
    assert len([each for each in status["sessions"] if each["agent"] == agent]) <= 101


def test_row_16_a_clear_and_a_resume_are_the_same_agent(bus: Daemon) -> None:
    hook = {"tool_use_id": "t"}
    with Adapter(bus.environment, "--application", "claude-code") as adapter:

        def whoami(session: str) -> tuple[str, str]:
            adapter.call("bind_caller", session_id=session, **hook)
            meta = {"claudecode/toolUseId": "t"}
            result = adapter.ask("tools/call", name="whoami", arguments={}, _meta=meta)
            found = adapter.structured(result)
            assert found["session"] == session
            return found["agent"], found["display_name"]

        first = whoami("first")
        assert whoami("after clear") == first
        assert whoami("first") == first


# 25: order


def test_row_25_a_clock_that_goes_back_and_forth_changes_no_order(place: Daemon) -> None:
    place.start()
    with place.peer() as one, place.peer() as two:
        sender, reader = one.attach("sender"), two.attach("reader")
        for number, wall in enumerate([0, -900, 200, -200, -900, 30, 0]):
            set_clock(place, wall)
            for part in ("a", "b"):
                sender.send("general", f"row25-{number}{part}", f"{number}{part}")
        expected = [f"{number}{part}" for number in range(7) for part in ("a", "b")]
        received = reader.receive(len(expected))
        for messages in (received, history(reader)):
            assert [message["content"] for message in messages] == expected
            assert [message["seq"] for message in messages] == list(range(1, len(expected) + 1))
            times = [message["sent_at"] for message in messages]
            assert times == sorted(times)
        results = sender.call("search", channels=["general"])["results"]  # it finds what it sent
        assert [each["message"]["content"] for each in results] == expected[::-1]
