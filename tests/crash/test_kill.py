"""kill -9 of each process in turn, in the middle of traffic: nothing is lost, nothing is doubled.

Every test ends with an audit of the database, its copies and what the reader was shown.
"""

from __future__ import annotations

import os
import signal

import pytest

from tests.support.audit import audited
from tests.support.daemon import Daemon

pytestmark = pytest.mark.timeout(300)

KILLS = 3
STEP = 15
"""Messages that each sender has accepted between two kills."""


@pytest.mark.parametrize("process", ["writer", "projector", "gateway", "redis"])
def test_a_killed_part_of_the_daemon_costs_nothing(bus: Daemon, process: str) -> None:
    supervisor = bus.pid("supervisor")
    with audited(bus) as traffic:
        for _ in range(KILLS):
            traffic.go_on(STEP)
            killed = bus.kill(process)
            traffic.go_on(STEP)
            bus.wait_replaced(process, killed)
        assert bus.pid("supervisor") == supervisor
        assert [traffic.reader.adapters, *(s.adapters for s in traffic.senders)] == [1] * 5


def test_a_killed_supervisor_takes_all_along_and_adapters_start_another_daemon(
    bus: Daemon,
) -> None:
    with audited(bus) as traffic:
        for _ in range(KILLS):
            traffic.go_on(STEP)
            killed = bus.kill("supervisor")
            traffic.go_on(STEP)
            bus.wait_replaced("supervisor", killed)
        assert [traffic.reader.adapters, *(s.adapters for s in traffic.senders)] == [1] * 5


def test_a_killed_adapter_of_the_reader_leads_to_redelivery_at_most(bus: Daemon) -> None:
    with audited(bus) as traffic:
        for _ in range(KILLS):
            traffic.go_on(STEP)
            traffic.reader.kill()
            traffic.go_on(STEP)
        assert traffic.reader.adapters == KILLS + 1


def test_a_killed_adapter_of_a_sender_leads_to_duplicates_of_none(bus: Daemon) -> None:
    with audited(bus) as traffic:
        for sender in traffic.senders:
            traffic.go_on(STEP)
            sender.kill()
        traffic.go_on(STEP)
        assert [sender.adapters for sender in traffic.senders] == [2] * len(traffic.senders)


def test_everything_dies_in_turn(bus: Daemon) -> None:
    with audited(bus) as traffic:
        for process in ("writer", "redis", "gateway", "projector", "supervisor"):
            traffic.go_on(STEP)
            bus.kill(process)
            traffic.reader.kill()
        traffic.go_on(STEP)


def test_writer_and_gateway_die_together(bus: Daemon) -> None:
    with audited(bus) as traffic:
        traffic.go_on(STEP)
        pids = [bus.pid(process) for process in ("writer", "gateway", "projector")]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        traffic.go_on(STEP)


def test_sends_caught_by_the_writers_death_are_accepted_in_their_order(bus: Daemon) -> None:
    with bus.peer() as peer:
        sender = peer.attach("caught")

        def ask(numbers: range) -> list[int]:
            params = {"attachment": sender.id, "channel": "general", "content": "x"}
            return [peer.request("send", **params, message_id=f"caught-{n}") for n in numbers]

        for first in range(0, KILLS * 400, 400):
            writer = bus.pid("writer")
            requests = ask(range(first, first + 200))
            os.kill(writer, signal.SIGSTOP)
            requests += ask(range(first + 200, first + 400))
            peer.call("heartbeat")  # so the gateway has read all of them
            os.kill(writer, signal.SIGKILL)
            seqs = [peer.result(request)["seq"] for request in requests]
            assert seqs == list(range(first + 1, first + 401))
            bus.wait_replaced("writer", writer)
