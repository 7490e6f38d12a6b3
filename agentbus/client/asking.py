"""One blocking connection to the daemon: requests, answers, notifications.

It has no thread: who holds a session must call `heartbeat` at least every 30 s, or lose
it. Notifications that come while an answer is awaited are kept for `next_note`.
"""

from __future__ import annotations

import socket
from collections import deque
from types import TracebackType
from typing import Final, Self, TypeVar

from agentbus.client.connection import NOBODY, Answer, Connection, unreachable
from agentbus.client.trust import require_own
from agentbus.errors import NotRunning, Unavailable, UnsafePermissions
from agentbus.model.ports import Instant
from agentbus.runtime.clock import SystemClock
from agentbus.wire.rpc import Params

ANSWER_SECONDS: Final = 30.0
CHUNK: Final = 256 * 1024

GONE: Final = "the daemon has ended the connection; try again, `agentbus status` tells more"

T = TypeVar("T", bound=Params)


class Asking:
    """A connection to the daemon at `path`, a context manager. Raises NotRunning without one,
    UnsafePermissions where it is not the user's.

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
            require_own(self._socket, path)
        except NOBODY as error:
            self._socket.close()
            raise NotRunning("no daemon runs; start it with: agentbus daemon") from error
        except OSError as error:
            self._socket.close()
            raise Unavailable(unreachable(path, error)) from error
        except UnsafePermissions:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
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
            raise Unavailable(GONE) from error
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

    def now(self) -> Instant:
        """Both clocks."""
        return self._clock.now()

    def _deadline(self, timeout: float) -> float:
        return self.now().monotonic + timeout

    def _read(self, deadline: float) -> bool:
        """Whether something came before the deadline."""
        left = deadline - self.now().monotonic
        if left <= 0:
            return False
        self._socket.settimeout(left)
        try:
            data = self._socket.recv(CHUNK)
        except TimeoutError:
            return False
        except OSError as error:
            raise Unavailable(GONE) from error
        finally:
            self._socket.settimeout(self._timeout)
        if not data:
            raise Unavailable(GONE)
        for each in self._connection.feed(data):
            if isinstance(each, Answer):
                self._answers[each.request] = each
            else:
                self._notes.append(each.params)
        return True
