"""The method `send`: shape, ready, attachment; then `admission` has it."""

from __future__ import annotations

from agentbus.gateway import accept
from agentbus.gateway.admission import Admission
from agentbus.gateway.channels import Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Call, live
from agentbus.gateway.outbox import Outbox
from agentbus.model.message import fingerprint
from agentbus.wire.links import Append
from agentbus.wire.rpc import SendParams


class Sending:
    """Judges sends."""

    def __init__(
        self,
        out: Outbox,
        condition: Condition,
        channels: Channels,
        admission: Admission,
        max_message_kib: int,
    ) -> None:
        self._out = out
        self._condition = condition
        self._channels = channels
        self._admission = admission
        self._max_message_kib = max_message_kib
        self._surely_fits = accept.surely_fits(max_message_kib)

    def send(self, call: Call, params: SendParams) -> None:
        """Has it submitted, now or when there is credit."""
        if not self._channels.knows(params.channel):
            accept.name("channel", params.channel)
        payload = accept.payload(params)
        self._condition.require_ready()
        attachment = live(call.connection, params.attachment)
        frame = Append(
            self._out.ref(),
            attachment.id,
            params.channel,
            params.message_id,
            fingerprint(params.channel, payload),
            payload,
        )
        too_large = None
        if call.size > self._surely_fits:
            too_large = accept.size(params, attachment, self._max_message_kib)
        self._admission.admit(frame, attachment, call, too_large)
