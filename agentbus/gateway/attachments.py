"""Attachments: claims on sessions, kept alive by heartbeats, ended by release, silence or a closed
connection. Whether a session may be claimed is for the writer to say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentbus.errors import AgentbusError, InvalidArgument, StorageFailed, Unavailable
from agentbus.gateway import accept
from agentbus.gateway.admission import Admission
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Call, Connection, live, stale
from agentbus.gateway.farewells import Farewells
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.pending import Operation
from agentbus.gateway.push import Pusher
from agentbus.gateway.rates import Rates
from agentbus.gateway.reports import Reports
from agentbus.gateway.writer_link import WriterLink
from agentbus.model.ids import AttachmentId
from agentbus.model.message import rfc3339
from agentbus.wire.links import Register, Registered, Release, Renew, Renewed, SubscriptionInfo
from agentbus.wire.rpc import (
    AttachmentParams,
    HeartbeatParams,
    HeartbeatResult,
    RegisterParams,
    RegisterResult,
    RenewResult,
    Subscription,
)

EXPIRY_SECONDS: Final = 30.0
"""Without a heartbeat for so long, a connection's attachments end."""

OVERSLEPT_SECONDS: Final = 5.0
"""A check that comes so late says that the gateway itself was stopped, not the adapters."""

MOST: Final = 1024
"""Attachments of one connection."""

EXPIRY: Final = "attachments"
"""Name of the alarm at which `expire` is due."""


class Attachments:
    """Begins and ends them."""

    def __init__(
        self,
        out: Outbox,
        alarms: Alarms,
        condition: Condition,
        writer: WriterLink,
        pusher: Pusher,
        reports: Reports,
        farewells: Farewells,
        admission: Admission,
        rates: Rates,
    ) -> None:
        self._out = out
        self._alarms = alarms
        self._condition = condition
        self._writer = writer
        self._pusher = pusher
        self._reports = reports
        self._farewells = farewells
        self._admission = admission
        self._rates = rates
        self._minted = 0
        self._check_at = 0.0

    # ---- methods

    def register(self, call: Call, params: RegisterParams) -> None:
        """Asks the writer for a claim."""
        self._condition.require_going_on()
        accept.registration(params)
        connection = call.connection
        if len(connection.attachments) >= MOST:
            raise InvalidArgument(f"a connection holds at most {MOST} attachments; release some")
        self._minted += 1
        identity = AttachmentId(f"{self._condition.incarnation}.{self._minted}")
        attachment = Attachment(connection, _claim(self._out.ref(), identity, params))
        connection.attachments[identity] = attachment
        connection.beat = self._alarms.now
        self._ensure_check()
        self._writer.ask(attachment.names, attachment, [call])

    def release(self, call: Call, params: AttachmentParams) -> None:
        """Ends a claim; that of an attachment which has ended already is no error."""
        attachment = call.connection.attachments.get(params.attachment)
        if attachment is None:
            self._out.done([call])
        else:
            self.end(attachment, [call])

    def heartbeat(self, call: Call, _params: HeartbeatParams) -> None:
        """Keeps all attachments of the connection alive."""
        connection = call.connection
        connection.beat = self._alarms.now
        alive = [each.id for each in connection.attachments.values() if each.session_id is not None]
        result = HeartbeatResult(
            attachments=list[str](alive),
            state=self._condition.state,
            lagging=self._pusher.is_behind(connection),
            accepted=self._condition.committed,
            visible=self._condition.visible,
        )
        self._out.answer(call, result)
        for attachment in connection.attachments.values():
            self._reports.pass_own(attachment)

    def renew(self, call: Call, params: AttachmentParams) -> None:
        """Has the writer prolong the session's subscriptions."""
        attachment = live(call.connection, params.attachment)
        self._writer.ask(Renew(self._out.ref(), attachment.id), attachment, [call])

    # ---- answers

    def registered(self, operation: Operation, outcome: Registered) -> None:
        """The claim stands, unless whoever made it has gone in the meantime."""
        attachment = operation.attachment
        assert attachment is not None
        connection = attachment.connection
        if connection.attachments.get(attachment.id) is not attachment:
            self._out.refuse_all(operation.calls, stale())
            return
        attachment.session_id = outcome.session_id
        attachment.display_name, attachment.agent = outcome.display_name, outcome.agent
        attachment.bucket = self._rates.of(outcome.session_id, self._alarms.now)
        attachment.last_commit = self._condition.committed
        result = _registration(outcome, self._condition)
        self._out.answer_all(operation.calls, result)
        for info in outcome.subscriptions:
            self._pusher.add(attachment, info)
        self._farewells.begin(attachment, outcome.expired)

    def not_registered(self, operation: Operation, error: AgentbusError) -> None:
        """There is no claim; the refusal is answered elsewhere.

        Where it was refused for want of a disk or a writer, a writer before may have committed it
        and died: so it is ended, or the session would be held by nobody.
        """
        attachment = operation.attachment
        if attachment is not None:
            attachment.connection.attachments.pop(attachment.id, None)
            if isinstance(error, StorageFailed | Unavailable):
                self._release(attachment)

    def renewed(self, operation: Operation, outcome: Renewed) -> None:
        """The subscriptions live longer."""
        attachment = operation.attachment
        assert attachment is not None
        for info in outcome.subscriptions:
            feed = attachment.feeds.get(info.id)
            if feed is not None:
                feed.info = info
        result = RenewResult(subscriptions=[described(info) for info in outcome.subscriptions])
        self._out.answer_all(operation.calls, result)

    # ---- ends

    def end(self, attachment: Attachment, calls: Iterable[Call] = ()) -> None:
        """Ends a claim; what was reported under it still counts."""
        self._reports.flush_of(attachment)
        self._reports.pass_own(attachment)
        self._forget(attachment)
        self._release(attachment, calls)

    def _release(self, attachment: Attachment, calls: Iterable[Call] = ()) -> None:
        release = Release(self._out.ref(), attachment.id)
        self._writer.ask(release, attachment, list(calls), lasting=True)

    def void(self, connections: Iterable[Connection]) -> None:
        """Another bus instance: no claim is known to it."""
        for connection in connections:
            for attachment in list(connection.attachments.values()):
                self._forget(attachment)

    def disconnected(self, connection: Connection) -> None:
        """The connection is over, and with it everything it held."""
        connection.closed = True
        for attachment in list(connection.attachments.values()):
            self.end(attachment)

    def expire(self, connections: Iterable[Connection]) -> None:
        """Ends the attachments of connections that have been silent for too long."""
        now = self._alarms.now
        overslept = now > self._check_at + OVERSLEPT_SECONDS
        for connection in connections:
            if overslept:
                connection.beat = now
            elif now >= connection.beat + EXPIRY_SECONDS:
                for attachment in list(connection.attachments.values()):
                    self.end(attachment)
        beats = [each.beat for each in connections if each.attachments]
        if beats:
            self._check(min(beats) + EXPIRY_SECONDS)

    def _forget(self, attachment: Attachment) -> None:
        attachment.connection.attachments.pop(attachment.id, None)
        self._admission.drop(attachment.lane, stale())
        for feed in list(attachment.feeds.values()):
            self._pusher.remove(feed)

    def _ensure_check(self) -> None:
        if not self._alarms.has(EXPIRY):
            self._check(self._alarms.now + EXPIRY_SECONDS)

    def _check(self, when: float) -> None:
        self._check_at = when
        self._alarms.set(EXPIRY, when)


def described(info: SubscriptionInfo) -> Subscription:
    """A subscription as adapters are shown it."""
    return Subscription(
        subscription=info.id,
        channel=info.channel,
        position=info.position,
        expires_at=rfc3339(round(info.expires_at * 1000)),
        include_own=info.include_own,
    )


def _registration(outcome: Registered, condition: Condition) -> RegisterResult:
    return RegisterResult(
        attachment=outcome.attachment,
        display_name=outcome.display_name,
        agent=outcome.agent,
        resumed=outcome.resumed,
        epoch=condition.epoch,
        subscriptions=[described(info) for info in outcome.subscriptions],
        instance=condition.instance,
    )


def _claim(ref: int, identity: AttachmentId, params: RegisterParams) -> Register:
    return Register(
        ref,
        identity,
        params.agent,
        params.application,
        params.session,
        params.child,
        params.parent,
        params.role,
        params.repository,
        params.repository_root,
        params.channels,
        params.again,
    )
