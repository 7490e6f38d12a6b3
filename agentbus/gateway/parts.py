"""The parts of a gateway, put together once."""

from __future__ import annotations

from collections.abc import Callable

from agentbus.config import Settings
from agentbus.errors import AgentbusError, Unavailable
from agentbus.gateway import (
    attachments,
    inbox,
    push,
    reports,
    searching,
    status,
    visibility,
    writer_link,
)
from agentbus.gateway.admission import Admission
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.alerts import Alerts
from agentbus.gateway.answers import Answers
from agentbus.gateway.attachments import Attachments
from agentbus.gateway.channels import Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Connection
from agentbus.gateway.directory import Directory
from agentbus.gateway.farewells import Farewells
from agentbus.gateway.finds import Finds, Reading
from agentbus.gateway.greeting import Greeter
from agentbus.gateway.history import History
from agentbus.gateway.inbox import Inbox
from agentbus.gateway.memories import Memories
from agentbus.gateway.metrics import Metrics
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.push import Pusher
from agentbus.gateway.rates import Rates
from agentbus.gateway.reads import Reads
from agentbus.gateway.reports import Reports
from agentbus.gateway.searching import Searching
from agentbus.gateway.sending import Sending
from agentbus.gateway.status import StatusDesk
from agentbus.gateway.subscriptions import Subscriptions
from agentbus.gateway.visibility import Visibility
from agentbus.gateway.writer_link import WriterLink
from agentbus.wire.links import MemoryDelete, MemoryEdit


class Parts:
    """Who does what, and the alarms that some of them set."""

    def __init__(self, settings: Settings, config_path: str) -> None:
        self.connections = connections = dict[int, Connection]()
        self.out = out = Outbox()
        self.alarms = alarms = Alarms()
        self.condition = condition = Condition()
        self.channels = channels = Channels()
        self.metrics = metrics = Metrics(alarms)
        self.reads = reads = Reads(out)
        self.finds = finds = Finds(out)
        self.visibility = visibility_ = Visibility(alarms, condition)
        self.writer = writer = WriterLink(out, alarms, condition)
        self.inbox = inbox_ = Inbox(out, alarms, condition, writer, reads)
        self.pusher = pusher = Pusher(
            out, alarms, channels, condition, reads, writer, inbox_, settings.prefetch_messages
        )
        self.farewells = farewells = Farewells(out, condition, pusher, inbox_, connections)
        self.reports = Reports(out, alarms, condition, writer, pusher, inbox_, metrics)
        self.admission = admission = Admission(
            out, alarms, condition, writer, metrics, finds, settings
        )
        size = settings.max_message_kib
        self.sending = Sending(out, condition, channels, admission, size)
        self.memories = Memories(out, condition, channels, reads, pusher, inbox_, admission, size)
        self.attachments = Attachments(
            out, alarms, condition, writer, pusher, self.reports, farewells, admission,
            Rates(settings),
        )  # fmt: skip
        self.subscriptions = Subscriptions(
            out, condition, channels, writer, pusher, farewells, inbox_
        )
        self.history = History(out, condition, channels, reads, visibility_)
        self.reading = Reading(out, condition, finds)
        self.searching = Searching(out, alarms, condition, channels, reads, visibility_)
        self.directory = Directory(out, condition, writer, enabled=settings.discovery_enabled)
        self.alerts = Alerts(out, alarms, connections)
        self.greeter = Greeter(out, condition, settings, config_path)
        self.status = StatusDesk(
            out, alarms, condition, channels, reads, admission, metrics, self.searching,
            self.alerts, connections, settings, config_path,
        )  # fmt: skip
        self.answers = Answers(
            out, writer, admission, self.attachments, self.subscriptions, self.reports, self.status
        )
        self.bells: dict[str, Callable[[], None]] = {
            attachments.EXPIRY: self._expire,
            inbox.CHANGED: inbox_.tell,
            push.STALLED: pusher.retry,
            reports.FLUSH: self.reports.flush,
            searching.LATE: self.searching.late,
            searching.NUDGE: self.searching.nudge,
            status.LATE: self.status.finish,
            visibility.LATE: visibility_.late,
            writer_link.AGAIN: writer.ask_again,
            writer_link.IMPATIENT: self._give_up,
        }

    def ring(self, name: str) -> None:
        """The alarm of that name has gone off."""
        self.bells[name]()

    def _expire(self) -> None:
        self.attachments.expire(list(self.connections.values()))

    def _give_up(self) -> None:
        error: AgentbusError = Unavailable(
            f"the writer did not come back within {self.writer.patience:.0f} s"
        )
        if self.condition.hindrance:
            error = Unavailable(f"{error.message}: {self.condition.hindrance}")
        for operation in self.writer.impatient():
            if isinstance(operation.frame, MemoryEdit | MemoryDelete):
                self.condition.doubtful = True
            self.answers.refuse(operation, error)
