"""A reader that takes nothing holds up nobody but itself."""

from __future__ import annotations

import time
from typing import Any

from tests.support.daemon import Daemon
from tests.support.stdio import Adapter

WINDOW = 256
MORE = 3 * WINDOW
TRIES = 3
SLOWER = 0.4
"""What is left of the others' speed at least; far from 1, since the machine may be busy."""


def row(status: dict[str, Any], session: str) -> dict[str, Any]:
    [found] = [row for row in status["sessions"] if row["session"] == session]
    return found


def full(session: str, messages: int) -> Any:
    return lambda status: row(status, session)["window"]["messages"] >= messages


def sleeper(bus: Daemon, session: str) -> Adapter:
    adapter = Adapter(bus.environment, "--application", "tests", "--session", session)
    adapter.call("whoami")
    return adapter


def test_its_window_fills_and_stays_so_while_others_get_everything(bus: Daemon) -> None:
    with sleeper(bus, "asleep") as asleep, bus.peer() as one, bus.peer() as other:
        sender, reader = one.attach("busy-sender"), other.attach("busy-reader")
        for number in range(MORE):
            sender.send("general", f"busy-{number}", str(number))
        assert [m["content"] for m in reader.receive(MORE)] == [str(n) for n in range(MORE)]
        window = bus.wait_until(full("asleep", WINDOW))
        assert row(window, "asleep")["window"]["messages"] == WINDOW
        [lag] = [
            subscription["lag"]
            for subscription in row(window, "asleep")["subscriptions"]
            if subscription["channel"] == "general"
        ]
        assert lag == MORE
        # nothing was lost on it: awake, it gets all, in order
        got: list[str] = []
        while len(got) < MORE:
            found = asleep.call("recv", wait_seconds=30, max_messages=500)["messages"]
            assert found
            got += [message["content"] for message in found]
        assert got == [str(number) for number in range(MORE)]


def speed(bus: Daemon, run: str) -> float:
    """Messages a second from one session, many in flight, to another that takes them all."""
    with bus.peer() as one, bus.peer() as other:
        sender, reader = one.attach(f"{run}-sender"), other.attach(f"{run}-reader")
        params = {"attachment": sender.id, "channel": "general", "content": "z" * 1024}
        began = time.monotonic()
        asked = [one.request("send", **params, message_id=f"{run}-{n}") for n in range(MORE)]
        assert len(reader.receive(MORE)) == MORE
        for number in asked:
            one.result(number)
        return MORE / (time.monotonic() - began)


def test_others_keep_their_speed_beside_it(bus: Daemon) -> None:
    alone = max(speed(bus, f"alone-{number}") for number in range(TRIES))
    with sleeper(bus, "asleep-beside"):
        speed(bus, "filling")
        bus.wait_until(full("asleep-beside", WINDOW))
        beside = max(speed(bus, f"beside-{number}") for number in range(TRIES))
    assert beside > alone * SLOWER


def test_the_window_is_bounded_in_bytes_too(bus: Daemon) -> None:
    body = "x" * (60 * 1024)
    with sleeper(bus, "asleep-too"), bus.peer() as one, bus.peer() as other:
        sender, reader = one.attach("large-sender"), other.attach("large-reader")
        for number in range(100):
            sender.send("general", f"large-{number}", body)
        assert len(reader.receive(100)) == 100
        # 68 envelopes of 60 KiB and somewhat fit into 4 MiB
        status = bus.wait_until(full("asleep-too", 60))
        window = row(status, "asleep-too")["window"]
        assert window["messages"] < 70
        assert 60 * len(body) < window["bytes"] <= 4 * 1024 * 1024


def test_a_connection_that_never_reads_its_socket_is_alone_with_that(bus: Daemon) -> None:
    with bus.peer() as deaf, bus.peer() as one, bus.peer() as other:
        deaf.attach("deaf")
        sender, reader = one.attach("loud-sender"), other.attach("loud-reader")
        for number in range(MORE):
            sender.send("general", f"loud-{number}", "y" * 1024)
        assert len(reader.receive(MORE)) == MORE
        assert row(bus.status(), "deaf")["window"]["messages"] <= WINDOW
