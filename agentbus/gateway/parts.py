"""The parts of a gateway, put together once."""

from __future__ import annotations

from collections.abc import Callable

from agentbus.config import Settings
from agentbus.errors import Unavailable
from agentbus.gateway import attachments, push, reports, status, writer_link
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.answers import Answers
from agentbus.gateway.attachments import Attachments
from agentbus.gateway.channels import Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Connection
from agentbus.gateway.greeting import Greeter
from agentbus.gateway.history import History
from agentbus.gateway.metrics import Metrics
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.pending import PATIENCE_SECONDS
from agentbus.gateway.push import Pusher
from agentbus.gateway.rates import Rates
from agentbus.gateway.reports import Reports
from agentbus.gateway.sending import Sending
from agentbus.gateway.status import StatusDesk
from agentbus.gateway.subscriptions import Subscriptions
from agentbus.gateway.writer_link import WriterLink


class Parts:
    """Who does what, and the alarms that some of them set."""

    def __init__(self, settings: Settings, config_path: str) -> None:
        self.connections: dict[int, Connection] = {}
        self.out = out = Outbox()
        self.alarms = alarms = Alarms()
        self.condition = condition = Condition()
        self.channels = channels = Channels()
        self.metrics = metrics = Metrics(alarms)
        self.writer = writer = WriterLink(out, alarms, condition)
        self.pusher = pusher = Pusher(out, alarms, channels, condition)
        self.reports = Reports(out, alarms, condition, writer, pusher, metrics)
        self.sending = sending = Sending(
            out, alarms, condition, channels, writer, metrics, settings.max_message_kib
        )
        self.attachments = Attachments(
            out, alarms, condition, writer, pusher, self.reports, sending.lanes, Rates(settings)
        )
        self.subscriptions = Subscriptions(out, condition, channels, writer, pusher)
        self.history = History(out, condition, channels)
        self.greeter = Greeter(out, condition, settings, config_path)
        self.status = StatusDesk(
            out, alarms, condition, channels, sending, metrics, self.connections, settings,
            config_path,
        )  # fmt: skip
        self.answers = Answers(
            out, writer, sending, self.attachments, self.subscriptions, self.reports, self.status
        )
        self.bells: dict[str, Callable[[], None]] = {
            attachments.EXPIRY: self._expire,
            push.STALLED: pusher.retry,
            reports.FLUSH: self.reports.flush,
            status.LATE: self.status.finish,
            writer_link.AGAIN: writer.ask_again,
            writer_link.IMPATIENT: self._give_up,
        }

    def ring(self, name: str) -> None:
        """The alarm of that name has gone off."""
        self.bells[name]()

    def _expire(self) -> None:
        self.attachments.expire(list(self.connections.values()))

    def _give_up(self) -> None:
        error = Unavailable(f"the writer did not come back within {PATIENCE_SECONDS:.0f} s")
        for operation in self.writer.impatient():
            self.answers.refuse(operation, error)
