"""Carrying out the operations of one transaction, each to an answer of its own."""

from __future__ import annotations

from typing import assert_never

from agentbus.errors import AgentbusError
from agentbus.store.write.rows import IdTaken
from agentbus.wire.error_codes import to_failure
from agentbus.wire.links import (
    Accepted,
    Append,
    ChannelCreate,
    CountAsk,
    DiscoverAsk,
    GapAsk,
    GatewayHello,
    GatewayToWriter,
    MemoryDelete,
    MemoryEdit,
    Outcome,
    ReceiptAsk,
    Refused,
    Register,
    Release,
    Renew,
    Report,
    StatusAsk,
    Subscribe,
    Unsubscribe,
)
from agentbus.writer import directory, gaps, identity, memories, receipts, subscriptions
from agentbus.writer.append import append
from agentbus.writer.batch import MAX_BYTES
from agentbus.writer.status import status
from agentbus.writer.work import Work


class Doubtful(Exception):
    """A send is not as new as was believed, or is to be refused unless it was accepted before."""


def carry_out(work: Work, operations: list[GatewayToWriter]) -> list[Outcome]:
    """The answers to the first of them, as many as fit one commit.

    Raises what the database raises, and Doubtful where it was `trusting`; then the transaction must
    not be committed.
    """
    try:
        return _carry_out_all(work, operations)
    except IdTaken as error:
        if work.trusting:
            raise Doubtful from error
        raise


def repeats(operations: list[GatewayToWriter], outcomes: list[Outcome]) -> bool:
    """Whether there are sends among them for which `trusting` would have been Doubtful."""
    return any(
        type(outcome) is not Accepted or outcome.duplicate
        for operation, outcome in zip(operations, outcomes, strict=False)  # some are left over
        if type(operation) is Append
    )


def _carry_out_all(work: Work, operations: list[GatewayToWriter]) -> list[Outcome]:
    if work.not_ready is None:
        _look_up(work, operations)
    outcomes: list[Outcome] = []
    for operation in operations:
        try:
            outcomes.append(_carry_out(work, operation))
        except AgentbusError as error:
            assert not isinstance(operation, GatewayHello)
            if work.trusting and type(operation) is Append:
                raise Doubtful from error
            outcomes.append(Refused(operation.ref, to_failure(error)))
        if work.size >= MAX_BYTES:
            break
    work.flush()
    return outcomes


def _look_up(work: Work, operations: list[GatewayToWriter]) -> None:
    appends: list[str] = []
    others: list[str] = []
    for operation in operations:
        if type(operation) is Append:
            if not work.trusting:
                appends.append(operation.message_id)
        elif isinstance(operation, MemoryEdit | MemoryDelete | ReceiptAsk):
            others.append(operation.operation_id)
    if appends or others:
        work.look_up(appends, others)


def _carry_out(work: Work, operation: GatewayToWriter) -> Outcome:
    if type(operation) is Append:  # nearly all are
        return append(work, operation)
    match operation:
        case Report():
            return subscriptions.report(work, operation)
        case Append():
            return append(work, operation)
        case MemoryEdit():
            return memories.edit(work, operation)
        case MemoryDelete():
            return memories.delete(work, operation)
        case ReceiptAsk():
            return receipts.ask(work, operation)
        case StatusAsk() | DiscoverAsk() | GapAsk() | CountAsk():
            return _told(work, operation)
        case GatewayHello():
            raise AssertionError("a greeting is no operation of a batch")
        case _:
            return _of_a_session(work, operation)


def _of_a_session(
    work: Work,
    operation: Register | Release | Renew | ChannelCreate | Subscribe | Unsubscribe,
) -> Outcome:
    match operation:
        case Register():
            return identity.register(work, operation)
        case Release():
            return identity.release(work, operation)
        case Renew():
            return subscriptions.renew(work, operation)
        case ChannelCreate():
            return subscriptions.create_channel(work, operation)
        case Subscribe():
            return subscriptions.subscribe(work, operation)
        case Unsubscribe():
            return subscriptions.unsubscribe(work, operation)
        case _:
            assert_never(operation)


def _told(work: Work, operation: StatusAsk | DiscoverAsk | GapAsk | CountAsk) -> Outcome:
    work.flush()  # they are answered from the database
    match operation:
        case StatusAsk():
            return status(work, operation)
        case DiscoverAsk():
            return directory.discover(work, operation)
        case GapAsk():
            return gaps.tell(work, operation)
        case CountAsk():
            return subscriptions.count(work, operation)
        case _:
            assert_never(operation)
