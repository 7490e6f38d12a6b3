"""From a line to a request, or to the answer that says why it is none."""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Final, Literal, cast

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

ANYBODY: Final = frozenset({"hello", "status", "stop", "reset"})
"""Methods that need no accepted greeting."""


class Asked(msgspec.Struct, frozen=True):
    """A request that can be carried out, as far as its shape goes; one subclass for each method."""

    params: Any
    id: int | str | None = None
    jsonrpc: Literal["2.0"] = "2.0"
    method: ClassVar[str]


def _kind(method: str, params: type[Params]) -> type[Asked]:
    kind = msgspec.defstruct(
        method,
        [("params", params)],
        bases=(Asked,),
        namespace={"method": method},
        frozen=True,
        tag=method,
        tag_field="method",
    )
    return cast("type[Asked]", kind)


KINDS: Final = {method: _kind(method, params) for method, (params, _) in METHODS.items()}

_decoder: Final[msgspec.json.Decoder[Asked]] = msgspec.json.Decoder(reduce(or_, KINDS.values()))
"""By the method. Refuses a line that names two methods, so what it reads is read as `_parse` would
read it."""

_decode_request = msgspec.json.Decoder(Request).decode
_params = {method: msgspec.json.Decoder(params) for method, (params, _) in METHODS.items()}

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


def read(content: bytes, *, greeted: bool) -> Asked:
    """What is asked; in one pass where that is acceptable, as nearly all is. Raises Fault.

    Who has not been `greeted` may ask only little.
    """
    try:
        asked = _decoder.decode(content)
    except (msgspec.MsgspecError, RecursionError):
        return _read_again(content, greeted=greeted)
    if not greeted and asked.method not in ANYBODY:
        raise _stranger(_id(asked.id))
    return asked


def _read_again(content: bytes, *, greeted: bool) -> Asked:
    """In two passes, the params apart: what is wrong, or that nothing is."""
    request = _parse(content)
    kind = KINDS.get(request.method)
    if kind is None:
        raise _no_method(_id(request.id), request.method)
    if not greeted and request.method not in ANYBODY:
        raise _stranger(_id(request.id))
    try:
        params = _params[request.method].decode(request.params)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _bad_params(_id(request.id), request.method, error) from None
    return kind(params, request.id)


def _parse(content: bytes) -> Request:
    try:
        request = _decode_request(content)
    except msgspec.ValidationError as error:
        raise _fault(content, INVALID_REQUEST, _shape("the request", error)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(content, error) from None
    if request.jsonrpc != "2.0":
        raise _fault(content, INVALID_REQUEST, InvalidArgument('jsonrpc must be "2.0"'))
    return request


def _id(value: int | str | None) -> bytes:
    return replies.NO_ID if value is None else replies.request_id(value)


def _bad_params(identity: bytes, method: str, error: Exception) -> Fault:
    what = f"the params of {method}"
    return Fault(replies.fault(identity, INVALID_PARAMS, _shape(what, error)))


def _no_method(identity: bytes, method: str) -> Fault:
    text = f"there is no method {method[:64]!r}; there are {', '.join(METHODS)}"
    return Fault(replies.fault(identity, METHOD_NOT_FOUND, InvalidArgument(text)))


def _stranger(identity: bytes) -> Fault:
    text = "only hello, status, stop and reset may be asked before an accepted hello"
    return Fault(replies.fault(identity, INVALID_REQUEST, InvalidArgument(text)))


def _shape(what: str, error: Exception) -> InvalidArgument:
    return InvalidArgument(f"{what}: {error}")


def overlong(line: Overlong) -> Fault:
    """The line was not kept."""
    text = (
        f"a line may have at most {line.ceiling} bytes; send a reference to large content instead"
    )
    return _fault(line.head, INVALID_REQUEST, MessageTooLarge(text))


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
