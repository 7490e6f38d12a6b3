"""How fast reports of what was handed off are committed, against plain updates of cursors."""

from __future__ import annotations

import os
import selectors
import tempfile
import time
from contextlib import closing
from typing import Final

from agentbus.gateway.reports import MOST
from agentbus.store.write.cursors import ADVANCE_SUBSCRIPTION, INSERT_SUBSCRIPTION
from bench.accept import SETTINGS
from bench.bare import database
from bench.bus import Bus, request
from bench.figures import Figure, at_least, figure, ratios
from bench.load import Connection, LoadError, Spec, first_error
from bench.recover import settled
from bench.runs import Plan

APART: Final = (MOST, 2)
"""Attachments, and reports of each in flight: as many as are committed at once, so that each moves
a cursor of its own, while the next of each comes."""

TOGETHER: Final = (8, 32)
"""As the load of the accept measurements; reports of one cursor are committed as their last."""

AT_ONCE: Final = 32
LEAST_RATIO: Final = 0.5
BOUND_SECONDS: Final = 120.0
EXPIRES_AT: Final = 4_000_000_000_000


def acknowledgments(plan: Plan) -> list[Figure]:
    """Each attachment reports its own messages, which are not delivered to it, one by one: nothing
    is measured but reports. The bare loop moves as many cursors in batches as large."""
    apart, together, bare = [], [], []
    for repeat in range(plan.repeats):
        plan.say(f"run {repeat + 1} of {plan.repeats}")
        apart.append(_bus(plan, *APART))
        bare.append(_bare(plan))
        together.append(_bus(plan, *TOGETHER))
    name = "reports of {} attachments, {} in flight each"
    return [
        at_least("reports, of bare updates", ratios(apart, bare), "x", LEAST_RATIO),
        figure(name.format(*APART), apart, "reports/s"),
        figure(f"{name.format(*TOGETHER)}, of bare updates", ratios(together, bare), "x"),
        figure(name.format(*TOGETHER), together, "reports/s"),
        figure(f"bare updates, batches of {MOST}", bare, "updates/s"),
    ]


class _Reporter(Connection):
    """One attachment that has a channel of its own, and all messages in it."""

    def __init__(self, path: str, number: int, messages: int) -> None:
        spec = Spec(path, "report", 0, 0, 0, 0.0, 0.0)
        super().__init__(spec, f"r{number}", [f"report-{number}"])
        self.sent = 0
        subscription = self.registered["subscriptions"][0]
        params = {
            "attachment": self.attachment,
            "epoch": self.registered["epoch"],
            "positions": [[subscription["subscription"], -1]],
        }
        self._template = request(0, "delivered", params) + b"\n"
        self._fill(f"report-{number}", messages)

    def _fill(self, channel: str, messages: int) -> None:
        fields = {"attachment": self.attachment, "channel": channel, "content": "x"}
        for first in range(0, messages, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, messages))
            lines = (
                request(0, "send", {**fields, "message_id": f"{channel}-{number}"}) + b"\n"
                for number in numbers
            )
            self.socket.sendall(b"".join(lines))
            missing = len(numbers)
            while missing:
                missing -= self.answers()

    def report(self, count: int) -> None:
        """So many more positions, one by one."""
        numbers = range(self.sent + 1, self.sent + count + 1)
        self.sent += count
        template = self._template
        self.socket.sendall(b"".join([template.replace(b"-1", b"%d" % n) for n in numbers]))

    def answers(self) -> int:
        """How many came."""
        lines = self.read()
        if b'"error"' in lines:
            raise LoadError(first_error(lines))
        return lines.count(b'"id":0')


def _bus(plan: Plan, attachments: int, in_flight: int) -> float:
    each = max(in_flight, plan.reports // attachments)
    with Bus(plan.base, SETTINGS) as bus, selectors.DefaultSelector() as selector:
        path = bus.place.paths.socket
        reporters = [_Reporter(path, number, each) for number in range(attachments)]
        for reporter in reporters:
            selector.register(reporter.socket, selectors.EVENT_READ, reporter)
        settled(bus)  # what is not visible yet cannot have been handed off
        began = time.perf_counter()
        for reporter in reporters:
            reporter.report(in_flight)
        missing = each * attachments
        while missing:
            for key, _ in selector.select(1.0):
                reporter = key.data
                count = reporter.answers()
                missing -= count
                more = min(count, each - reporter.sent)
                if more:
                    reporter.report(more)
            if time.perf_counter() - began > BOUND_SECONDS:
                raise TimeoutError(f"{missing} reports were not answered")
        took = time.perf_counter() - began
        for reporter in reporters:
            reporter.socket.close()
    return each * attachments / took


def _bare(plan: Plan) -> float:
    with (
        tempfile.TemporaryDirectory(prefix="ab-bare-", dir=plan.base) as directory,
        closing(database(os.path.join(directory, "bus.sqlite3"))) as connection,
    ):
        cursors = range(1, MOST + 1)
        with connection.transaction():
            rows = [(session, 1, 0, False, EXPIRES_AT) for session in cursors]
            connection.executemany(INSERT_SUBSCRIPTION, rows)
        total, position = 0.0, 0
        while total < plan.bare_seconds:
            position += 1
            moves = [(position, cursor, position) for cursor in cursors]
            began = time.perf_counter()
            with connection.transaction():
                connection.executemany(ADVANCE_SUBSCRIPTION, moves)
            total += time.perf_counter() - began
    return position * len(cursors) / total
