"""One connection to the daemon, without IO: requests to bytes, bytes to answers and notices.

Errors of the daemon come back as the exceptions they were (`errors`); bytes that no daemon would
send raise `InternalError`, after which the connection is of no use.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agentbus.errors import AgentbusError, InternalError, InvalidArgument
from agentbus.wire.error_codes import ErrorData, RpcError, from_data
from agentbus.wire.lines import LineDecoder, Overlong
from agentbus.wire.rpc import MAX_LINE, METHODS, NOTIFICATIONS, Params, Reply

NOBODY: Final = (FileNotFoundError, NotADirectoryError, ConnectionRefusedError)
"""What connecting meets where no daemon listens."""


class Answer(msgspec.Struct, frozen=True):
    """The result of a request, or the error that came instead."""

    request: int
    method: str
    result: Params | None
    error: AgentbusError | None = None


class Note(msgspec.Struct, frozen=True):
    """A notification from the daemon."""

    params: Params


Incoming = Answer | Note

_reply: Final = msgspec.json.Decoder(Reply)


class Connection:
    """Numbers requests and matches answers; make a new one for each socket."""

    def __init__(self) -> None:
        self._lines = LineDecoder(MAX_LINE)
        self._pending: dict[int, str] = {}
        self._numbers = 0

    @property
    def pending(self) -> int:
        """Requests that were not answered."""
        return len(self._pending)

    def request(self, method: str, params: Params) -> tuple[int, bytes]:
        """The number of a new request, and the line to write. Raises InvalidArgument."""
        number = self._numbers + 1
        document = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            line = msgspec.json.encode(document)
        except UnicodeEncodeError:  # arguments of a program may be any bytes
            raise InvalidArgument(f"{method}: what was given is no UTF-8 text") from None
        self._numbers = number
        self._pending[number] = method
        return self._numbers, line + b"\n"

    def feed(self, data: bytes) -> list[Incoming]:
        """What the daemon says, in order. Raises InternalError."""
        incoming: list[Incoming] = []
        for line in self._lines.feed(data):
            if isinstance(line, Overlong):
                raise InternalError(f"the daemon sent a line of more than {line.ceiling} bytes")
            one = self._read(line)
            if one is not None:
                incoming.append(one)
        return incoming

    def _read(self, line: bytes) -> Incoming | None:
        try:
            reply = _reply.decode(line)
            if reply.method is not None:
                return _note(reply.method, reply.params)
            return self._answer(reply)
        except msgspec.MsgspecError as error:
            raise InternalError(f"the daemon sent what cannot be read: {error}") from error

    def _answer(self, reply: Reply) -> Answer | None:
        if not isinstance(reply.id, int):
            return None
        method = self._pending.pop(reply.id, None)
        if method is None:
            return None
        if reply.error is not None:
            return Answer(reply.id, method, None, read_error(reply.error))
        return Answer(reply.id, method, msgspec.json.decode(reply.result, type=METHODS[method][1]))


def _note(method: str, params: msgspec.Raw) -> Note | None:
    kind = NOTIFICATIONS.get(method)
    return None if kind is None else Note(msgspec.json.decode(params, type=kind))


def read_error(error: RpcError) -> AgentbusError:
    """The exception behind the error of a response."""
    data: Any = error.data
    if isinstance(data, dict):
        try:
            data = msgspec.convert(data, ErrorData)
        except msgspec.ValidationError:
            data = None
    if isinstance(data, ErrorData):
        return from_data(data)
    return InternalError(f"the daemon refused the request: {error.message} ({error.code})")


def unreachable(path: str, error: OSError) -> str:
    """What is told where a socket is there and cannot be connected to."""
    advice = "try again, `agentbus status` tells more"
    if isinstance(error, PermissionError):
        advice = "it must belong to you, like the directory that it is in"
    reason = error.strerror or "it does not answer"
    return f"the daemon cannot be reached at {path} ({reason}); {advice}"
