"""The warning that the bus is nearly full of what may not be evicted."""

from __future__ import annotations

from typing import Final

from agentbus.gateway import replies
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.connections import Connection, attachments_of
from agentbus.gateway.outbox import Outbox
from agentbus.wire.links import CapacityWarning
from agentbus.wire.rpc import NoticeNote

SHOWN_SECONDS: Final = 20 * 60.0
"""How long `status` shows it: the writer repeats it every 15 minutes as long as it holds."""


class Alerts:
    """Passes it on to whoever follows a channel, once each."""

    def __init__(self, out: Outbox, alarms: Alarms, connections: dict[int, Connection]) -> None:
        self._out = out
        self._alarms = alarms
        self._connections = connections
        self._last: tuple[float, str] | None = None

    def capacity(self, warning: CapacityWarning) -> None:
        """Tells all attached subscribers; who follows several channels needs no second copy."""
        self._last = (self._alarms.now, warning.text)
        for attachment in attachments_of(self._connections):
            channels = sorted(feed.info.channel for feed in attachment.feeds.values())
            if channels:
                note = NoticeNote(
                    attachment=attachment.id,
                    kind="capacity",
                    channel=channels[0],
                    text=warning.text,
                )
                line = replies.notification(b"notice", note)
                self._out.line_if_read(attachment.connection, line)

    def shown(self) -> list[str]:
        """For `status`."""
        if self._last is None or self._alarms.now > self._last[0] + SHOWN_SECONDS:
            return []
        return [self._last[1]]
