"""One bus from its cold start to its end; each number of it is taken once."""

from __future__ import annotations

import itertools
import selectors
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
import psutil  # type: ignore[import-untyped]

from bench.figures import percentile
from bench.peers.peer import Peer, Seat, Step, drive
from bench.peers.rpc import Refused

READ: Final = 100
FOUND: Final = 20
WORDS: Final = 250
SENDERS: Final = 4
STARTS: Final = 3
MOST_TRIES: Final = 20


class Load(msgspec.Struct, frozen=True):
    """How much of it; `seconds` bounds each of the two parts that send."""

    seconds: float
    sends: int
    rows: int
    searches: int


class Result(msgspec.Struct, omit_defaults=True):
    """Milliseconds where nothing else is said. None: the bus cannot do it."""

    cold: float
    second: float
    resident: float
    """MiB of an adapter after its first calls; of the server where there are no adapters."""
    listed: float
    """KiB of the answer to `tools/list`."""
    send: float
    send_99: float
    rate: float
    """Messages a second that were accepted of four senders."""
    refused: float
    """Percent of what these sent."""
    read: float
    search: float | None = None


def measure(kind: type[Peer], base: str, programs: str, load: Load) -> Result:
    """The whole run of one bus. Raises Refused, EOFError and the errors of its answers."""
    peer = kind(base, programs)
    try:
        return _measure(peer, load)
    finally:
        peer.close()


def _measure(peer: Peer, load: Load) -> Result:
    client = peer.open()
    peer.first(client)
    cold = _since(client.began)
    second = statistics.median([_start(peer) for _ in range(STARTS)])
    listed = client.size_of("tools/list") / 1024
    receiver = peer.receiver(client)
    senders = [peer.sender(peer.open(), number) for number in range(SENDERS)]
    took = _latencies(peer, senders[0], receiver, load)
    resident = psutil.Process(senders[0].client.pid).memory_info().rss / 2**20
    read = _reading(peer, senders[0], receiver)
    rate, refused = _together(peer, senders, receiver, load)
    return Result(
        cold=cold,
        second=second,
        resident=resident,
        listed=listed,
        send=statistics.median(took),
        send_99=percentile(took, 99),
        rate=rate,
        refused=refused,
        read=read,
        search=_searching(peer, senders[0], receiver, load) if peer.searches else None,
    )


def texts() -> Iterator[str]:
    """Contents of 1 KiB, of words; each has one of `WORDS` rare ones."""
    for number in itertools.count():
        head = f"message {number} about rare{number % WORDS} "
        yield (head + "plain words fill the rest of it and are in every message " * 20)[:1024]


def _start(peer: Peer) -> float:
    client = peer.open()
    peer.first(client)
    took = _since(client.began)
    peer.drop(client)
    return took


def _latencies(peer: Peer, sender: Seat, receiver: Seat, load: Load) -> list[float]:
    """Of sends one at a time; what comes is read between them where little is held."""
    content = texts()
    for _ in range(5):
        _accepted(sender, next(content))
    took: list[float] = []
    deadline = time.perf_counter() + load.seconds
    while len(took) < load.sends and (time.perf_counter() < deadline or len(took) < 20):
        if len(took) % (peer.holds // 2) == 0:
            _empty(receiver)
        began = time.perf_counter()
        _accepted(sender, next(content))
        took.append(_since(began))
    return took


def _reading(peer: Peer, sender: Seat, receiver: Seat) -> float:
    """Of `READ` messages, in several goes where fewer are held."""
    content = texts()
    _empty(receiver)
    took = 0.0
    share = min(READ, peer.holds)
    for _ in range(READ // share):
        for _ in range(share):
            _accepted(sender, next(content))
        time.sleep(peer.settle_seconds)
        began = time.perf_counter()
        came = drive(receiver.client, receiver.read(share))
        took += _since(began)
        drive(receiver.client, receiver.clear())
        if came < share:
            raise Refused(f"{peer.name}: {came} of {share} messages came")
    return took


def _empty(receiver: Seat) -> None:
    while drive(receiver.client, _taken(receiver, READ)) >= READ:
        pass


def _taken(receiver: Seat, count: int) -> Step[int]:
    came = yield from receiver.read(count)
    yield from receiver.clear()
    return came


def _accepted(sender: Seat, text: str) -> None:
    """Sends; what is refused is sent again, and that counts."""
    for _ in range(MOST_TRIES):
        with suppress(Refused):
            return drive(sender.client, sender.send(text))
    return drive(sender.client, sender.send(text))


def _searching(peer: Peer, sender: Seat, receiver: Seat, load: Load) -> float:
    content = texts()
    peer.fill(sender, list(itertools.islice(content, load.rows)))
    time.sleep(peer.settle_seconds)
    took = []
    for number in range(load.searches):
        began = time.perf_counter()
        found = drive(receiver.client, receiver.search(f"rare{number * 7 % WORDS}"))
        took.append(_since(began))
        if found < min(FOUND, load.rows // WORDS):
            raise Refused(f"{peer.name}: only {found} found")
    return statistics.median(took)


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


# ---- several at once


class Running:
    """Steps of one seat, one after the other, each of whose answers another loop waits for."""

    def __init__(self, seat: Seat, make: Callable[[], Step[Any]]) -> None:
        self.seat = seat
        self.done = 0
        self.refused = 0
        self._make = make
        self._step = make()
        self._begin(next(self._step))

    def go_on(self) -> None:
        """Reads the answer that is there and writes the next request."""
        try:
            call = self._step.send(self.seat.client.finish())
        except StopIteration:
            self.done += 1
            call = self._again()
        except Refused:
            self.refused += 1
            call = self._again()
        self._begin(call)

    def _again(self) -> Any:
        self._step = self._make()
        return next(self._step)

    def _begin(self, call: Any) -> None:
        tool, arguments = call
        self.seat.client.begin("tools/call", {"name": tool, "arguments": arguments})


def _together(
    peer: Peer, senders: Sequence[Seat], receiver: Seat, load: Load
) -> tuple[float, float]:
    """Accepted messages a second, and percent refused; where little is held, one reads besides."""
    content = texts()
    sending = [Running(seat, lambda seat=seat: seat.send(next(content))) for seat in senders]
    reading = [Running(receiver, lambda: _taken(receiver, peer.holds))] if peer.holds < READ else []
    began = time.perf_counter()
    _run([*sending, *reading], began + load.seconds)
    took = time.perf_counter() - began
    accepted = sum(each.done for each in sending)
    refused = sum(each.refused for each in sending)
    for each in [*sending, *reading]:
        each.seat.client.answer()  # of the request that is still on its way
    return accepted / took, 100 * refused / max(1, accepted + refused)


def _run(running: Sequence[Running], until: float) -> None:
    with selectors.DefaultSelector() as selector:
        for each in running:
            selector.register(each.seat.client.fileno(), selectors.EVENT_READ, each)
        while (left := until - time.perf_counter()) > 0:
            for key, _ in selector.select(left):
                key.data.go_on()
