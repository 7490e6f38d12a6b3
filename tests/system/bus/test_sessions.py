"""What a session finds waiting for it, depending on whose it is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.support.daemon import Daemon, wait
from tests.support.stdio import Adapter


def session(bus: Daemon, name: str, agent: str = "Sam") -> Adapter:
    return Adapter(bus.environment, "--application", "tests", "--session", name, "--agent", agent)


def contents(result: dict[str, Any]) -> list[str]:
    return [message["content"] for message in result["messages"]]


def drain(adapter: Adapter, count: int) -> list[str]:
    """At least so many messages, then whatever is there."""
    found: list[str] = []
    while len(found) < count:
        found += contents(adapter.call("recv", wait_seconds=30))
    return found + contents(adapter.call("recv"))


def test_a_resumed_session_gets_its_backlog_and_nothing_twice(bus: Daemon) -> None:
    with session(bus, "writer", "Wanda") as writer:
        with session(bus, "resumed") as reader:
            reader.call("whoami")
            writer.call("send", channel="general", content="before")
            assert drain(reader, 1) == ["before"]
        for number in range(5):
            writer.call("send", channel="general", content=f"meanwhile {number}")
        with session(bus, "resumed") as reader:
            assert drain(reader, 5) == [f"meanwhile {number}" for number in range(5)]
        with session(bus, "resumed") as reader:
            assert contents(reader.call("recv")) == []


def test_a_fresh_session_starts_at_the_current_position(bus: Daemon) -> None:
    with session(bus, "teller", "Tilda") as teller:
        teller.call("send", channel="general", content="old")
        with session(bus, "fresh") as reader:
            reader.call("whoami")
            teller.call("send", channel="general", content="new")
            assert drain(reader, 1) == ["new"]


def test_two_sessions_of_one_agent_get_a_copy_each(bus: Daemon) -> None:
    with (
        session(bus, "source", "Sally") as source,
        session(bus, "one", "Twin") as one,
        session(bus, "two", "Twin") as two,
    ):
        names = {one.call("whoami")["display_name"], two.call("whoami")["display_name"]}
        assert names == {"Twin", "Twin2"}
        for number in range(3):
            source.call("send", channel="general", content=f"{number}")
        assert drain(one, 3) == ["0", "1", "2"]
        assert drain(two, 3) == ["0", "1", "2"]


def test_a_session_does_not_hear_itself(bus: Daemon) -> None:
    with session(bus, "talker", "Tom") as talker, session(bus, "listener", "Lea") as listener:
        talker.call("whoami")
        listener.call("whoami")
        talker.call("send", channel="general", content="mine")
        listener.call("send", channel="general", content="theirs")
        assert drain(talker, 1) == ["theirs"]
        assert drain(listener, 1) == ["mine"]


RESTART = timedelta(seconds=0.1)
"""Less than a gateway takes to start."""


def expiries(adapter: Adapter) -> set[datetime]:
    subscriptions = adapter.call("whoami")["subscriptions"]
    return {datetime.fromisoformat(each["expires_at"]) for each in subscriptions}


def test_an_adapter_that_comes_back_by_itself_renews_nothing_and_a_recv_does(
    cold_bus: Daemon,
) -> None:
    cold_bus.start()
    with session(cold_bus, "idle") as idle:
        before = expiries(idle)
        killed = cold_bus.kill("gateway")
        cold_bus.wait_until(
            lambda status: (
                any(row["attached"] for row in status["sessions"])
                and killed not in [item["pid"] for item in status["processes"]]
            )
        )
        assert max(expiries(idle)) - max(before) < RESTART
        idle.call("recv")
        assert wait(lambda: min(expiries(idle)) > max(before))
