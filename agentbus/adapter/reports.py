"""What the daemon is told about a session without being asked for anything: what was delivered, and
that the session is active."""

from __future__ import annotations

from typing import Final

import msgspec

from agentbus.adapter.inbox import Inbox
from agentbus.adapter.link import Link
from agentbus.adapter.session import Session
from agentbus.client.connection import Answer
from agentbus.errors import StaleAttachment
from agentbus.wire.rpc import AttachmentParams, DeliveredParams, RenewResult

RENEW_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 0.5
"""Between two tries of what could not be committed."""


class _Report(msgspec.Struct, frozen=True, eq=False):
    session: Session
    inbox: Inbox
    attachment: str
    epoch: str
    positions: list[tuple[int, int]]


class Reports:
    """Reports and renewals under way, by the number of their request."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._reporting: dict[int, _Report] = {}
        self._renewing: dict[int, Session] = {}

    def is_pending(self, session: Session) -> bool:
        """Whether the daemon has not confirmed yet all that was handed off."""
        return any(each.session is session for each in self._reporting.values())

    def report(self, session: Session) -> None:
        """Tells what was handed off, and of activity, where it can be told now."""
        attachment, epoch = session.attachment, session.inbox.epoch
        if attachment is None or epoch is None or not self._link.ready:
            return
        if session.owes_renewal:
            session.owes_renewal = False
            number = self._link.request("renew", AttachmentParams(attachment=attachment))
            self._renewing[number] = session
        positions = session.inbox.report()
        if not positions:
            return
        number = self._link.request(
            "delivered",
            DeliveredParams(attachment=attachment, epoch=epoch, positions=positions),
        )
        self._reporting[number] = _Report(session, session.inbox, attachment, epoch, positions)

    def renew(self, session: Session, now: float) -> None:
        """A recv is activity: its subscriptions live on. Told at most once a minute, but until the
        daemon has confirmed it: maybe no other recv comes for as long as they live."""
        if session.renewed_at is None or session.renewed_at + RENEW_SECONDS <= now:
            session.renewed_at, session.owes_renewal = now, True
            self.report(session)

    def answered(self, answer: Answer, now: float) -> Session | None:
        """Takes answers to these; the session whose attachment turned out to be over, if any."""
        report = self._reporting.pop(answer.request, None)
        if report is not None:
            return self._reported(report, answer, now)
        session = self._renewing.pop(answer.request, None)
        if session is not None and isinstance(answer.result, RenewResult):
            session.subscriptions = {each.channel: each for each in answer.result.subscriptions}
        elif session is not None:
            session.owes_renewal, session.report_at = True, now + AGAIN_SECONDS
        return None

    @staticmethod
    def _reported(report: _Report, answer: Answer, now: float) -> Session | None:
        session = report.session
        if session.inbox is not report.inbox:
            return None
        if answer.error is None:
            session.inbox.confirm(report.positions)
            return None
        session.inbox.unreport(report.positions)
        same = (report.attachment, report.epoch) == (session.attachment, session.inbox.epoch)
        if same and isinstance(answer.error, StaleAttachment):
            return session
        session.report_at = now + AGAIN_SECONDS
        return None

    def link_lost(self) -> None:
        """No answers will come: what was reported is due again with the next claim, whatever its
        epoch."""
        self._reporting.clear()
        for session in self._renewing.values():
            session.owes_renewal = True
        self._renewing.clear()
