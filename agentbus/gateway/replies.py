"""Lines to adapters, built once each, from parts that are JSON already wherever there are any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from agentbus.errors import AgentbusError
from agentbus.model.ids import AttachmentId, Epoch, Seq, SubscriptionId
from agentbus.wire import error_codes
from agentbus.wire.error_codes import ErrorData, RpcError
from agentbus.wire.rpc import EpochNote, Expired, Gap, Params

NO_ID: Final = b"null"
"""Id of answers to lines whose id cannot be told."""

_encode = msgspec.json.Encoder().encode


def request_id(value: int | str) -> bytes:
    """The id of a request as it is repeated in the answer."""
    return _encode(value)


def result(identity: bytes, value: Params) -> bytes:
    """A response."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (identity, _encode(value))


def done(identity: bytes) -> bytes:
    """A response that says no more."""
    return b'{"jsonrpc":"2.0","id":%b,"result":{}}\n' % identity


def error(identity: bytes, failure: AgentbusError) -> bytes:
    """The response to a request that was understood and not carried out."""
    return _error(identity, error_codes.to_rpc(failure))


def fault(identity: bytes, code: int, failure: AgentbusError) -> bytes:
    """The response to a line that is no acceptable request; `code` is one of JSON-RPC's own.

    `data` is there too, so that clients need to understand one kind of error only.
    """
    data: ErrorData = error_codes.to_data(failure)
    return _error(identity, RpcError(code, failure.message, data))


def _error(identity: bytes, body: RpcError) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (identity, _encode(body))


def notification(method: bytes, params: Params) -> bytes:
    """A line that answers nothing."""
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}\n' % (method, _encode(params))


def epoch(value: Epoch) -> bytes:
    """The notification that a new epoch has begun."""
    return notification(b"epoch", EpochNote(epoch=value))


def deliver_head(
    attachment: AttachmentId, under: Epoch, subscription: SubscriptionId, channel: str
) -> bytes:
    """What all `deliver` lines of a subscription begin with, within an epoch."""
    return (
        b'{"jsonrpc":"2.0","method":"deliver","params":'
        b'{"attachment":%b,"epoch":%b,"subscription":%d,"channel":%b,"through":'
    ) % (_encode(attachment), _encode(under), subscription, _encode(channel))


def deliver(
    head: bytes,
    through: Seq,
    bodies: Sequence[bytes],
    gaps: Sequence[Gap] = (),
    *,
    behind: bool = False,
) -> list[bytes]:
    """A `deliver` line in pieces; each of `bodies` is envelopes joined by commas, as they are."""
    pieces = [b'%b%d,"messages":[' % (head, through), bodies[0]]
    for body in bodies[1:]:
        pieces += (b",", body)
    pieces.append(_tail(gaps, behind=behind) if gaps or behind else b"]}}\n")
    return pieces


def _tail(gaps: Sequence[Gap], *, behind: bool) -> bytes:
    told = b',"gaps":%b' % _encode(gaps) if gaps else b""
    return b"]%b%b}}\n" % (told, b',"behind":true' if behind else b"")


def expired(head: bytes, through: Seq, told: Iterable[Expired]) -> bytes:
    """A `deliver` line that says that the subscription's cursor has run out."""
    return b'%b%d,"expired":%b}}\n' % (head, through, _encode(list(told)))
