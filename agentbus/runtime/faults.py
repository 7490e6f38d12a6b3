"""Where tests make a process die, stand still or fail: all points, and what happens at them.

A point is a spot between two steps. `main` modules pass the port (`Fault`) to what runs within
them; what it does is `no_fault` in earnest, and only a directory named by `AGENTBUS_TEST` (see
`testing`) makes it look. There a file with the name of a point and an `Order` in it is armed: the
process that comes to the point as often as the order says carries it out, and renames the file
first, so that it happens once, whoever is started again. How often is counted in the file.

    <point>         armed: an `Order`, as JSON
    <point>.fired   a `Fired`: it has happened, or does so in this moment
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Final, Literal, TypeVar, cast

import msgspec

from agentbus.errors import StorageFailed
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.testing import requested as test_requested

FIRED: Final = ".fired"
_LOCK: Final = ".lock"


class Point(StrEnum):
    """The spots, by the way of a message; the process that passes it comes first."""

    UNCOMMITTED = "uncommitted"
    """writer: a batch is carried out, its transaction is not committed"""

    COMMITTED = "committed"
    """writer: a batch is durable, nobody has been told"""

    COMMIT_HEARD = "commit_heard"
    """projector: a commit has come (its senders have their answers), Redis has nothing of it"""

    BATCH_TORN = "batch_torn"
    """projector: half of the commands of a transaction have been written to Redis"""

    PROJECTED = "projected"
    """projector: Redis has carried out a transaction, the gateway has not been told"""

    VISIBLE = "visible"
    """gateway: it has been told what is visible, nothing of it is pushed"""

    PUSHED = "pushed"
    """gateway: messages have been written to adapters"""

    BUFFERED = "buffered"
    """adapter: messages have come and are in its buffer"""

    ANSWERING = "answering"
    """adapter: the result of a call is about to be written, no byte of it is out"""

    HANDED_OFF = "handed_off"
    """adapter: the last byte of a result is out, the daemon has not been told"""

    REPORTED = "reported"
    """adapter: a report has been written to the daemon"""

    REPORT_HEARD = "report_heard"
    """gateway: a report has come, the writer has not been asked to commit it"""

    REPORT_QUEUED = "report_queued"
    """writer: a report has come, nothing of it is committed"""

    CHUNK_DELETED = "chunk_deleted"
    """writer: a chunk of a cleanup is committed, the projector has not been told"""

    CATCHING_UP = "catching_up"
    """projector: a step of catching up is about to be written"""

    REBUILDING = "rebuilding"
    """projector: a step of a rebuild (the first is to clear) is about to be written"""

    SNAPSHOT_BEGUN = "snapshot_begun"
    """projector: Redis has said that it saves in the background"""

    SNAPSHOT_ASKED = "snapshot_asked"
    """projector: Redis is about to be told to save before an orderly end"""

    INDEXING = "indexing"
    """indexer: rows are about to be added to the index"""

    INDEXED = "indexed"
    """indexer: rows have been added, durably"""

    HANDING = "handing"
    """supervisor: a child that runs is about to be handed a new end of a link"""

    HANDED = "handed"
    """supervisor: the end has been sent, the child has not said that it is in use"""

    TAKING = "taking"
    """any child: a new end has come, the old one is not read to its end"""

    TAKEN = "taken"
    """any child: the new end is in use, the supervisor has not been told"""

    MIGRATING = "migrating"
    """writer: all steps of the schema have been taken, their transaction is not committed"""

    MIGRATED = "migrated"
    """writer: the schema is committed, nothing is served yet"""


class InjectedFault(Exception):
    """What a point raises in place of a fault of the program."""


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to happen at a point.

    `action`: `kill` (SIGKILL) and `stop` (SIGSTOP) are of the process itself, `raise` is an error
    nobody foresees, `refuse` one of the disk (StorageFailed). `times`: it happens at this one, the
    first being 1, of all processes together. `process`: only this one counts, by its name in
    `status` or `adapter`; None: whoever comes there.
    """

    action: Literal["kill", "stop", "raise", "refuse"] = "kill"
    times: int = 1
    process: str | None = None


class Fired(msgspec.Struct, frozen=True):
    """Where it happened, and when, by the machine's monotonic clock in seconds."""

    process: str
    pid: int
    at: float


Fault = Callable[[Point], None]
"""The port. May raise InjectedFault or StorageFailed, and may not return at all."""


def no_fault(_point: Point) -> None:
    """In earnest nothing happens."""


class Faults:
    """The port of one process, which looks into a directory at every point."""

    def __init__(self, directory: str, process: str) -> None:
        self._directory = directory
        self._process = process

    def __call__(self, point: Point) -> None:
        """The process is at the point."""
        act = self.claim(point)
        if act is not None:
            act()

    def claim(self, point: Point) -> Callable[[], None] | None:
        """For who has to prepare what is to happen: how to carry it out, where it is due now."""
        path = os.path.join(self._directory, point.value)
        if not os.path.exists(path):
            return None
        with open(os.path.join(self._directory, _LOCK), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            order = self._counted(path)
        return None if order is None else lambda: _carry_out(order, point)

    def _counted(self, path: str) -> Order | None:
        """The order, if this is the time; nobody else has the file meanwhile."""
        try:
            with open(path, "rb") as file:
                order = msgspec.json.decode(file.read(), type=Order)
        except FileNotFoundError:
            return None
        if order.process not in (None, self._process):
            return None
        if order.times > 1:
            _replace(path, path, msgspec.structs.replace(order, times=order.times - 1))
            return None
        now = SystemClock().now().monotonic
        _replace(path, path + FIRED, Fired(self._process, os.getpid(), now))
        os.unlink(path)
        return order


def _replace(path: str, target: str, content: msgspec.Struct) -> None:
    with open(path + ".new", "wb") as file:
        file.write(msgspec.json.encode(content))
    os.rename(path + ".new", target)


def _carry_out(order: Order, point: Point) -> None:
    match order.action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "raise":
            raise InjectedFault(f"a test asked for it at {point.value}")
        case "refuse":
            raise StorageFailed(f"a test asked for it at {point.value}")


def requested(process: str) -> Fault:
    """The port of a process. Raises ConfigInvalid as `testing.requested` does."""
    testing = test_requested()
    if testing is None or testing.faults_directory is None:
        return no_fault
    return Faults(testing.faults_directory, process)


# ---- cores

Spot = Callable[[Any], Point | None]
"""The point, if any, that an event or an effect stands for."""

_Core = TypeVar("_Core")


def _nowhere(_: Any) -> None:
    return None


class _Watched:
    """Stands for a core: its shell carries effects out while they are being looked at."""

    def __init__(self, core: Any, fault: Fault, event: Spot, before: Spot, after: Spot) -> None:
        self._core = core
        self._fault = fault
        self._event = event
        self._before = before
        self._after = after

    def handle(self, event: Any, now: Any) -> Iterator[Any]:
        """The effects, one at a time."""
        self._pass(self._event, event)
        for effect in self._core.handle(event, now):
            self._pass(self._before, effect)
            yield effect
            self._pass(self._after, effect)

    def _pass(self, spot: Spot, what: Any) -> None:
        point = spot(what)
        if point is not None:
            self._fault(point)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)


def watched(
    core: _Core,
    fault: Fault,
    *,
    event: Spot = _nowhere,
    before: Spot = _nowhere,
    after: Spot = _nowhere,
) -> _Core:
    """A core with points before events, and before and after effects that its shell carries out one
    by one; in earnest the core itself."""
    if fault is no_fault:
        return core
    return cast("_Core", _Watched(core, fault, event, before, after))
