"""Who takes part."""

from __future__ import annotations

from functools import partial

from agentbus.errors import DiscoveryDisabled
from agentbus.gateway import accept
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Call, live
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.writer_link import WriterLink
from agentbus.model.message import rfc3339
from agentbus.wire.error_codes import from_failure
from agentbus.wire.links import DiscoverAsk, Discovered, KnownAgent, KnownSession, Outcome, Refused
from agentbus.wire.rpc import DiscoveredAgent, DiscoveredSession, DiscoverParams, DiscoverResult


class Directory:
    """The method `discover`."""

    def __init__(
        self, out: Outbox, condition: Condition, writer: WriterLink, *, enabled: bool
    ) -> None:
        self._out = out
        self._condition = condition
        self._writer = writer
        self._enabled = enabled

    def discover(self, call: Call, params: DiscoverParams) -> None:
        """Asks the writer, where the setting allows it. Raises DiscoveryDisabled."""
        accept.discover(params)
        if not self._enabled:
            raise DiscoveryDisabled(
                "discovery_enabled is off in this bus' configuration: agents are not listed; the "
                "senders of messages are still named"
            )
        self._condition.require_going_on()
        attachment = live(call.connection, params.attachment)
        frame = DiscoverAsk(self._out.ref(), attachment.id, params.agent)
        self._writer.inquire(frame, partial(self._discovered, call))

    def _discovered(self, call: Call, outcome: Outcome) -> None:
        if isinstance(outcome, Discovered):
            agents = [_agent(agent) for agent in outcome.agents]
            self._out.answer(call, DiscoverResult(agents=agents))
        elif isinstance(outcome, Refused):
            self._out.refuse(call, from_failure(outcome.failure))


def _agent(agent: KnownAgent) -> DiscoveredAgent:
    return DiscoveredAgent(
        agent=agent.agent, sessions=[_session(session) for session in agent.sessions]
    )


def _session(session: KnownSession) -> DiscoveredSession:
    return DiscoveredSession(
        display_name=session.display_name,
        application=session.application,
        session=session.session,
        attached=session.attached,
        last_seen=rfc3339(round(session.last_seen * 1000)),
        child=session.child,
        parent=session.parent,
        role=session.role,
        repository=session.repository,
    )
