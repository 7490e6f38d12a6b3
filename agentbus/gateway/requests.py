"""From a line to a request, or to the answer that says why it is none."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentbus.errors import AgentbusError, InvalidArgument, MessageTooLarge
from agentbus.gateway import replies
from agentbus.wire.error_codes import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
)
from agentbus.wire.lines import Overlong
from agentbus.wire.rpc import METHODS, Params, Request

_decode = msgspec.json.Decoder(Request).decode

_ID: Final = re.compile(
    rb'\s*\{(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,)*\s*"id"\s*:\s*(-?\d{1,18}|"[^"\\]*")\s*[,}]'
)
"""The id of a request that cannot be read, where it stands before the params."""

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class Fault(Exception):
    """A line that is no acceptable request; `line` is what to answer."""

    def __init__(self, line: bytes) -> None:
        super().__init__("no acceptable request")
        self.line = line


def parse(content: bytes | Overlong) -> Request:
    """Raises Fault."""
    if isinstance(content, Overlong):
        raise _fault(content.head, INVALID_REQUEST, _overlong(content))
    try:
        request = _decode(content)
    except msgspec.ValidationError as error:
        raise _fault(content, INVALID_REQUEST, _shape("the request", error)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(content, error) from None
    if request.jsonrpc != "2.0":
        raise _fault(content, INVALID_REQUEST, InvalidArgument('jsonrpc must be "2.0"'))
    return request


def bad_params(identity: bytes, method: str, error: Exception) -> Fault:
    """The params are of the wrong shape."""
    what = f"the params of {method}"
    return Fault(replies.fault(identity, INVALID_PARAMS, _shape(what, error)))


def no_method(identity: bytes, method: str) -> Fault:
    """The method does not exist."""
    text = f"there is no method {method[:64]!r}; there are {', '.join(METHODS)}"
    return Fault(replies.fault(identity, METHOD_NOT_FOUND, InvalidArgument(text)))


def stranger(identity: bytes) -> Fault:
    """The request came before an accepted greeting."""
    text = "only hello, status, stop and reset may be asked before an accepted hello"
    return Fault(replies.fault(identity, INVALID_REQUEST, InvalidArgument(text)))


def decoders() -> dict[str, msgspec.json.Decoder[Params]]:
    """What reads the params of each method."""
    return {name: msgspec.json.Decoder(params) for name, (params, _) in METHODS.items()}


def _shape(what: str, error: Exception) -> InvalidArgument:
    return InvalidArgument(f"{what}: {error}")


def _overlong(line: Overlong) -> MessageTooLarge:
    return MessageTooLarge(
        f"a line may have at most {line.ceiling} bytes; send a reference to large content instead"
    )


def _unreadable(content: bytes, error: Exception) -> Fault:
    if _SURROGATE.search(content):
        text = f"a string holds half of a surrogate pair, or the line is not JSON: {error}"
        return _fault(content, INVALID_PARAMS, InvalidArgument(text))
    text = f"the line is not JSON: {error}"
    return _fault(content, PARSE_ERROR, InvalidArgument(text))


def _fault(content: bytes, code: int, error: AgentbusError) -> Fault:
    return Fault(replies.fault(_identity(content), code, error))


def _identity(content: bytes) -> bytes:
    """The id as it is repeated: read and written anew, since the line is perhaps no JSON there."""
    found = _ID.match(content)
    if found is None:
        return replies.NO_ID
    try:
        return replies.request_id(msgspec.json.decode(found[1], type=int | str))
    except msgspec.MsgspecError:
        return replies.NO_ID
