"""The load of the accept measurements: `python -m bench.load SPEC`, SPEC and result in JSON.

A process of its own with one selectors loop over raw sockets, as lean as can be: it runs on the
same cores as what it measures. Senders write lines from a template and count answers without
reading them, unless the bytes show an error; the subscriber reads `deliver` and reports
`delivered`, and finds out when a position is missing.
"""

from __future__ import annotations

import selectors
import sys
import time

import msgspec

from bench.bus import Peer, request
from bench.words import texts

CHANNEL = "load"
HEARTBEAT_SECONDS = 10.0
LINGER_SECONDS = 20.0
CHUNK = 1 << 18
MOST_PER_SECOND = 9_500
"""Of one sender: somewhat below the highest rate limit there is."""

VARIED = 4_096
"""Different texts where they are to be found again."""


class Spec(msgspec.Struct, frozen=True):
    """What to do; `run` makes session and message ids unique on a bus that several loads use."""

    socket: str
    run: str
    senders: int
    in_flight: int
    content_bytes: int
    warm_up: float
    seconds: float
    latencies: bool = False
    messages: int = 0
    """Ends sooner when so many were accepted; 0: no such end."""

    channels: int = 1
    """Messages go to so many channels in turn, all of which the subscriber has."""

    varied: bool = False
    """Whether contents are of words that are rare and common, instead of all the same."""


class Result(msgspec.Struct, frozen=True):
    """`accepted` in `seconds`; `received` and `sent` are of the whole run, warm-up included."""

    accepted: int
    seconds: float
    sent: int
    received: int
    cpu_seconds: float
    latencies_ms: list[float] = []


class Note(msgspec.Struct):
    """What the subscriber looks at in a line."""

    method: str = ""
    params: Deliver | None = None
    error: msgspec.Raw | None = None


class Deliver(msgspec.Struct):
    """Of `deliver`; the messages stay unread."""

    epoch: str = ""
    subscription: int = 0
    through: int = 0
    messages: list[msgspec.Raw] = []
    gaps: list[msgspec.Raw] = []


class LoadError(Exception):
    """The bus answered with an error, or lost something."""


def first_error(lines: bytes) -> str:
    """One of several lines, all of which may say the same."""
    return next(line for line in lines.splitlines() if b'"error"' in line).decode()


class Connection:
    """One attachment on one connection."""

    def __init__(self, spec: Spec, name: str, channels: list[str]) -> None:
        peer = Peer(spec.socket)
        self.registered = peer.call(
            "register",
            application="bench",
            session=f"{spec.run}-{name}",
            agent=f"{spec.run}-{name}",
            channels=channels,
        )
        self.peer = peer
        self.attachment: str = self.registered["attachment"]
        self.socket = peer.socket
        self.rest = peer.rest

    def heartbeat(self) -> None:
        """Its answer is known by the word `attachments`."""
        self.socket.sendall(request("beat", "heartbeat", {}) + b"\n")

    def read(self) -> bytes:
        """What can be read now, whole lines only."""
        data = self.socket.recv(CHUNK)
        if not data:
            raise LoadError("the daemon closed a connection")
        lines, end, rest = (self.rest + data).rpartition(b"\n")
        self.rest = rest
        return lines + end


class Sender(Connection):
    """Keeps a number of sends in flight."""

    def __init__(self, spec: Spec, number: int) -> None:
        super().__init__(spec, f"s{number}", [])
        self.sent = 0
        self.accepted = 0
        self.since = 0.0
        self._began = 0.0
        self._run = f"{spec.run}-{number}"
        contents = _contents(spec)
        self._templates = [
            self._template(channel_name(place % spec.channels), contents[place % len(contents)])
            for place in range(max(spec.channels, len(contents)))
        ]

    def _template(self, channel: str, content: str) -> bytes:
        message = {
            "attachment": self.attachment,
            "channel": channel,
            "message_id": f"{self._run}-@",
            "content": content,
        }
        line = request(0, "send", message).replace(b"%", b"%%") + b"\n"
        return line.replace(b'"id":0', b'"id":%d').replace(b'-@"', b'-%d"')

    def send(self, count: int) -> None:
        """Puts so many more into flight."""
        first = self.sent
        self.sent += count
        self._keep_to_the_limit()
        templates, kinds = self._templates, len(self._templates)
        self.socket.sendall(
            b"".join([templates[n % kinds] % (n, n) for n in range(first, first + count)])
        )

    def _keep_to_the_limit(self) -> None:
        """A second's worth may go at once. Only a sender that is alone comes to it, and waits."""
        now = time.perf_counter()
        self._began = self._began or now
        early = self.sent / MOST_PER_SECOND - 1 - (now - self._began)
        if early > 0:
            time.sleep(early)

    def answered(self) -> int:
        """How many answers came."""
        lines = self.read()
        if b'"error"' in lines:
            raise LoadError(first_error(lines))
        count = lines.count(b"\n") - lines.count(b'"attachments"')
        self.accepted += count
        return count


class Subscriber(Connection):
    """Takes everything and reports it."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec, "subscriber", [channel_name(n) for n in range(spec.channels)])
        subscriptions = self.registered["subscriptions"]
        self.through: dict[int, int] = {
            each["subscription"]: each["position"] for each in subscriptions
        }
        self.received = 0
        self._decoder = msgspec.json.Decoder(Note)

    def take(self) -> None:
        """Reads what has come and reports its last position."""
        epoch = ""
        moved: set[int] = set()
        for line in self.read().splitlines():
            note = self._decoder.decode(line)
            if note.error is not None:
                raise LoadError(line.decode())
            if note.method == "deliver" and note.params is not None:
                self._check(note.params)
                epoch = note.params.epoch
                moved.add(note.params.subscription)
        if epoch:
            params = {"attachment": self.attachment, "epoch": epoch}
            report = {**params, "positions": [(id_, self.through[id_]) for id_ in moved]}
            self.socket.sendall(request("delivered", "delivered", report) + b"\n")

    def _check(self, deliver: Deliver) -> None:
        count = len(deliver.messages)
        through = self.through[deliver.subscription]
        if deliver.through - through != count or deliver.gaps:
            raise LoadError(f"{count} messages take {through} to {deliver.through}")
        self.through[deliver.subscription] = deliver.through
        self.received += count


def text(size: int) -> str:
    """Plain text, as most content is; no two words alike would be no harder on the bus."""
    return ("The quick brown fox jumps over the lazy dog. " * (size // 45 + 1))[:size]


def channel_name(number: int) -> str:
    """Of the channels that a load goes to."""
    return CHANNEL if number == 0 else f"{CHANNEL}-{number}"


def _contents(spec: Spec) -> list[str]:
    if spec.varied:
        return texts(VARIED, spec.content_bytes)
    return [text(spec.content_bytes)]


class Load:
    """The loop."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.subscriber = Subscriber(spec)
        self.senders = [Sender(spec, number) for number in range(spec.senders)]
        self.latencies: list[float] = []
        self.accepted = 0
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.subscriber.socket, selectors.EVENT_READ, None)
        for sender in self.senders:
            self.selector.register(sender.socket, selectors.EVENT_READ, sender)

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self.selector.close()
        for connection in (self.subscriber, *self.senders):
            connection.socket.close()

    def run(self) -> Result:
        """Warm-up, the measured seconds, and until the subscriber has everything."""
        spec = self.spec
        for sender in self.senders:
            sender.since = time.perf_counter()
            sender.send(spec.in_flight)
        self._until(time.perf_counter() + spec.warm_up)
        before, cpu = self.accepted, time.process_time()
        self.latencies.clear()
        began = time.perf_counter()
        self._until(began + spec.seconds)
        seconds = time.perf_counter() - began
        accepted, cpu = self.accepted - before, time.process_time() - cpu
        self._finish()
        sent = sum(sender.sent for sender in self.senders)
        return Result(accepted, seconds, sent, self.subscriber.received, cpu, self.latencies)

    def _until(self, deadline: float) -> None:
        now = time.perf_counter()
        beat = tick = now
        shown = self.accepted
        while now < deadline and not self._is_enough():
            self._turn(min(1.0, deadline - now), sending=True)
            now = time.perf_counter()
            if now - beat > HEARTBEAT_SECONDS:
                beat = now
                for connection in (self.subscriber, *self.senders):
                    connection.heartbeat()
            if now - tick >= 1:
                rate = (self.accepted - shown) / (now - tick)
                print(f"{rate:.0f}", flush=True)
                tick, shown = now, self.accepted

    def _is_enough(self) -> bool:
        return 0 < self.spec.messages <= self.accepted

    def _turn(self, timeout: float, *, sending: bool) -> None:
        for key, _ in self.selector.select(timeout):
            if key.data is None:
                self.subscriber.take()
                continue
            sender: Sender = key.data
            count = sender.answered()
            self.accepted += count
            if self.spec.latencies:
                now = time.perf_counter()
                self.latencies.append((now - sender.since) * 1000)
                sender.since = now
            if sending and count:
                sender.send(count)

    def _finish(self) -> None:
        """Waits for answers on their way, and for the subscriber to have all of it."""
        deadline = time.perf_counter() + LINGER_SECONDS
        sent = sum(sender.sent for sender in self.senders)
        while self.accepted < sent or self.subscriber.received < sent:
            if time.perf_counter() > deadline:
                raise LoadError(
                    f"of {sent} messages {self.accepted} were accepted and "
                    f"{self.subscriber.received} received {LINGER_SECONDS:.0f} s later"
                )
            self._turn(1.0, sending=False)


def main() -> int:
    """Reads the spec from the first argument, writes rates, then the result, as lines."""
    spec = msgspec.json.decode(sys.argv[1], type=Spec)
    with Load(spec) as load:
        result = load.run()
    print(msgspec.json.encode(result).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
