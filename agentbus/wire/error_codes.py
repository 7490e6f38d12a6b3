"""The only place where an exception becomes a wire error and back."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agentbus.errors import BY_CODE, AgentbusError, InternalError

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
APPLICATION_ERROR: Final = -32000
"""JSON-RPC code of every error that has an application code in `data.code`."""


class Failure(msgspec.Struct, array_like=True, frozen=True):
    """An `AgentbusError` inside an internal frame."""

    code: str
    message: str
    reason: str | None = None
    retry_after_ms: int | None = None


class ErrorData(msgspec.Struct, frozen=True, omit_defaults=True):
    """`error.data` of a JSON-RPC error, and the `error` of an MCP tool result."""

    code: str
    message: str
    retryable: bool
    reason: str | None = None
    retry_after_ms: int | None = None


class RpcError(msgspec.Struct, frozen=True, omit_defaults=True):
    """The `error` member of a JSON-RPC response."""

    code: int
    message: str
    data: ErrorData | msgspec.UnsetType | Any = msgspec.UNSET


def to_failure(error: AgentbusError) -> Failure:
    """For a frame to another process of the daemon."""
    return Failure(error.code, error.message, error.reason, error.retry_after_ms)


def from_failure(failure: Failure) -> AgentbusError:
    """The exception a `Failure` was made of; an unknown code becomes InternalError."""
    return _build(failure.code, failure.message, failure.reason, failure.retry_after_ms)


def to_data(error: AgentbusError) -> ErrorData:
    """What adapters and agents are shown of an error."""
    return ErrorData(error.code, error.message, error.retryable, error.reason, error.retry_after_ms)


def from_data(data: ErrorData) -> AgentbusError:
    """The exception behind a JSON-RPC error with an application code."""
    return _build(data.code, data.message, data.reason, data.retry_after_ms)


def to_rpc(error: AgentbusError) -> RpcError:
    """The JSON-RPC error of an application error."""
    return RpcError(APPLICATION_ERROR, error.message, to_data(error))


def _build(
    code: str, message: str, reason: str | None, retry_after_ms: int | None
) -> AgentbusError:
    kind = BY_CODE.get(code, InternalError)
    return kind(message, reason=reason, retry_after_ms=retry_after_ms)
