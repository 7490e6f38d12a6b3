"""Lines of one event are gathered by connection, and nothing overtakes what must come first."""

from __future__ import annotations

from agentbus.gateway.connections import Connection
from agentbus.gateway.events import Effect, SendFirst, SendIfRead, SendLines
from agentbus.gateway.outbox import Outbox
from agentbus.model.window import Window


def connection(identity: int) -> Connection:
    return Connection(identity, Window(1, 1))


ONE, TWO = connection(1), connection(2)


def test_lines_of_an_event_are_one_effect_for_each_connection() -> None:
    out = Outbox()
    for to, line in ((ONE, b"a"), (TWO, b"b"), (ONE, b"c")):
        out.line(to, line)
    assert out.take() == [SendLines(1, [b"a", b"c"]), SendLines(2, [b"b"])]
    out.line(ONE, b"d")
    assert out.take() == [SendLines(1, [b"d"])]


def test_what_follows_a_line_that_goes_first_follows_it_on_every_connection() -> None:
    out = Outbox()
    out.line(ONE, b"a")
    out.line(TWO, b"b")
    out.line_first(TWO, b"first")
    out.line(ONE, b"c")
    out.line(TWO, b"d")
    expected: list[Effect] = [SendLines(1, [b"a"]), SendLines(2, [b"b"]), SendFirst(2, b"first")]
    assert out.take() == [*expected, SendLines(1, [b"c"]), SendLines(2, [b"d"])]


def test_a_line_that_may_be_missed_keeps_its_place_among_its_connections_lines() -> None:
    out = Outbox()
    out.line(ONE, b"a")
    out.line(TWO, b"b")
    out.line_if_read(ONE, b"note")
    out.line(ONE, b"c")
    out.line(TWO, b"d")
    assert out.take() == [
        SendLines(1, [b"a"]),
        SendLines(2, [b"b", b"d"]),
        SendIfRead(1, b"note"),
        SendLines(1, [b"c"]),
    ]


def test_nobody_writes_to_a_connection_that_is_over() -> None:
    out, gone = Outbox(), connection(3)
    out.line(gone, b"a")
    gone.closed = True
    for tell in (out.line, out.line_first, out.line_if_read):
        tell(gone, b"b")
    assert out.take() == [SendLines(3, [b"a"])]
