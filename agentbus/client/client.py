"""Bus operations for commands, tests and benches: one blocking connection.

It has no thread: who holds a session must call `heartbeat` (or `wait`) at least every 30 s, or lose
it. Notifications that come while an answer is awaited are kept for `next_note`.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, TypeVar

from agentbus import __version__
from agentbus.client.connection import Answer, Connection
from agentbus.config import Configuration
from agentbus.errors import NotRunning, Unavailable
from agentbus.runtime.clock import SystemClock
from agentbus.wire.rpc import (
    PROTOCOL,
    AttachmentParams,
    ChannelCreateParams,
    ChannelCreateResult,
    ChannelListParams,
    ChannelListResult,
    DeliveredParams,
    Empty,
    HeartbeatParams,
    HeartbeatResult,
    HelloParams,
    HelloResult,
    HistoryParams,
    HistoryResult,
    Params,
    RegisterParams,
    RegisterResult,
    RenewResult,
    SendParams,
    SendResult,
    StatusResult,
    SubscribeParams,
    SubscribeResult,
    UnsubscribeParams,
    UnsubscribeResult,
)

ANSWER_SECONDS: Final = 30.0
CHUNK: Final = 256 * 1024

T = TypeVar("T", bound=Params)


class Client:
    """A connection to the daemon at `path`, a context manager. Raises NotRunning without one.

    Methods raise the daemon's errors, and Unavailable where it does not answer.
    """

    def __init__(self, path: str, timeout: float = ANSWER_SECONDS) -> None:
        self._timeout = timeout
        self._clock = SystemClock()
        self._connection = Connection()
        self._answers: dict[int, Answer] = {}
        self._notes: deque[Params] = deque()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(path)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            self._socket.close()
            raise NotRunning("no daemon runs; start it with: agentbus daemon") from error
        except OSError as error:
            self._socket.close()
            raise Unavailable(f"{path}: {error}") from error

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Releases everything registered here."""
        self._socket.close()

    # asking

    def ask(self, method: str, params: Params) -> int:
        """Sends a request without waiting; its number is for `answer`."""
        number, line = self._connection.request(method, params)
        try:
            self._socket.sendall(line)
        except OSError as error:
            raise Unavailable(f"the daemon is gone: {error}") from error
        return number

    def answer(self, number: int, kind: type[T], timeout: float | None = None) -> T:
        """The result of a request sent before."""
        deadline = self._deadline(self._timeout if timeout is None else timeout)
        while number not in self._answers:
            if not self._read(deadline):
                raise Unavailable("the daemon does not answer")
        answer = self._answers.pop(number)
        if answer.error is not None:
            raise answer.error
        assert isinstance(answer.result, kind)
        return answer.result

    def call(self, method: str, params: Params, kind: type[T]) -> T:
        """A request and its result."""
        return self.answer(self.ask(method, params), kind)

    def next_note(self, timeout: float | None = None) -> Params | None:
        """The next notification (`deliver`, `epoch`, `stopping`), None where none comes in time."""
        deadline = self._deadline(self._timeout if timeout is None else timeout)
        while not self._notes:
            if not self._read(deadline):
                return None
        return self._notes.popleft()

    def wait_closed(self, timeout: float) -> bool:
        """Whether the daemon closes the connection in time; what it still says is read."""
        deadline = self._deadline(timeout)
        try:
            while self._read(deadline):
                pass
        except Unavailable:
            return True
        return False

    def _deadline(self, timeout: float) -> float:
        return self._clock.now().monotonic + timeout

    def _read(self, deadline: float) -> bool:
        """Whether something came before the deadline."""
        left = deadline - self._clock.now().monotonic
        if left <= 0:
            return False
        self._socket.settimeout(left)
        try:
            data = self._socket.recv(CHUNK)
        except TimeoutError:
            return False
        except OSError as error:
            raise Unavailable(f"the daemon is gone: {error}") from error
        finally:
            self._socket.settimeout(self._timeout)
        if not data:
            raise Unavailable("the daemon has closed the connection")
        for each in self._connection.feed(data):
            if isinstance(each, Answer):
                self._answers[each.request] = each
            else:
                self._notes.append(each.params)
        return True

    # the bus

    def hello(self, configuration: Configuration | None = None) -> HelloResult:
        """First of all; without a configuration, whatever the daemon's settings are is fine."""
        given = configuration
        params = HelloParams(
            protocol=PROTOCOL,
            version=__version__,
            fingerprint=None if given is None else given.settings.fingerprint(),
            config_path=None if given is None else given.path,
        )
        return self.call("hello", params, HelloResult)

    def register(self, application: str, session: str, **facts: Any) -> RegisterResult:
        """Claims a session; `facts` are further members of RegisterParams."""
        params = RegisterParams(application=application, session=session, **facts)
        return self.call("register", params, RegisterResult)

    def release(self, attachment: str) -> None:
        """Ends a claim."""
        self.call("release", AttachmentParams(attachment=attachment), Empty)

    def heartbeat(self) -> HeartbeatResult:
        """Keeps all claims of this connection."""
        return self.call("heartbeat", HeartbeatParams(), HeartbeatResult)

    def renew(self, attachment: str) -> RenewResult:
        """Keeps the session's subscriptions."""
        return self.call("renew", AttachmentParams(attachment=attachment), RenewResult)

    def create_channel(self, attachment: str, name: str, **wishes: Any) -> ChannelCreateResult:
        """Creates a channel; `wishes` are further members of ChannelCreateParams."""
        params = ChannelCreateParams(attachment=attachment, name=name, **wishes)
        return self.call("channel.create", params, ChannelCreateResult)

    def list_channels(self, attachment: str, **wishes: Any) -> ChannelListResult:
        """One page of channels; `wishes` are further members of ChannelListParams."""
        params = ChannelListParams(attachment=attachment, **wishes)
        return self.call("channel.list", params, ChannelListResult)

    def subscribe(
        self, attachment: str, channel: str, *, include_own: bool | None = None
    ) -> SubscribeResult:
        """Subscribes, or renews."""
        params = SubscribeParams(attachment=attachment, channel=channel, include_own=include_own)
        return self.call("subscribe", params, SubscribeResult)

    def unsubscribe(self, attachment: str, channel: str) -> UnsubscribeResult:
        """Ends a subscription."""
        params = UnsubscribeParams(attachment=attachment, channel=channel)
        return self.call("unsubscribe", params, UnsubscribeResult)

    def send(
        self, attachment: str, channel: str, message_id: str, content: str, **more: Any
    ) -> SendResult:
        """Sends a message; `more` are further members of SendParams."""
        params = SendParams(
            attachment=attachment, channel=channel, message_id=message_id, content=content, **more
        )
        return self.call("send", params, SendResult)

    def history(self, attachment: str, channel: str, **wishes: Any) -> HistoryResult:
        """Messages of a channel; `wishes` are further members of HistoryParams."""
        params = HistoryParams(attachment=attachment, channel=channel, **wishes)
        return self.call("history", params, HistoryResult)

    def delivered(self, attachment: str, epoch: str, positions: Iterable[tuple[int, int]]) -> None:
        """Reports (subscription, position) pairs; returns when they are committed."""
        params = DeliveredParams(attachment=attachment, epoch=epoch, positions=list(positions))
        self.call("delivered", params, Empty)

    def status(self) -> dict[str, Any]:
        """The document of `agentbus status --json`."""
        return self.call("status", Empty(), StatusResult).status

    def stop(self) -> None:
        """Asks for an orderly stop."""
        self.call("stop", Empty(), Empty)
