"""What a run of the benchmarks says about itself."""

from __future__ import annotations

from io import StringIO

from bench.progress import Progress
from bench.suite import EXPECTED, MEASUREMENTS, expected


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def progress() -> tuple[Progress, Clock, StringIO]:
    clock, stream = Clock(), StringIO()
    return Progress(stream, {"one": 10.0, "two": 20.0, "three": 30.0}, clock), clock, stream


def test_a_line_says_what_is_measured_and_how_much_is_left():
    found, clock, stream = progress()
    found.begin("one")
    clock.now += 4
    found.say("run 1 of 2")
    assert stream.getvalue() == "   4 s, about 56.0 s left  [1/3] one:  run 1 of 2\n"


def test_lines_that_stay_are_few():
    found, clock, stream = progress()
    for part in ("one", "two"):
        found.begin(part)
        for number in range(20):
            found.say(f"turn {number}")
            clock.now += 0.25
    turns = [line.split()[-1] for line in stream.getvalue().splitlines()]
    assert turns == ["0", "8", "16"] * 2


def test_on_a_terminal_one_line_is_written_over(monkeypatch):
    found, _, stream = progress()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    found.begin("one")
    found.say("first")
    found.say("second")
    found.end()
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith("second\r\x1b[K")


def test_what_is_left_goes_by_how_long_the_others_took():
    found, clock, _ = progress()
    found.begin("one")
    clock.now += 20
    found.begin("two")
    assert found.left() == 100
    clock.now += 60
    assert found.left() == 60  # it has overrun; what comes later is as long as before
    found.begin("three")
    assert found.left() == 30 * 80 / 30


def test_each_measurement_has_an_expected_time():
    assert list(EXPECTED) == list(MEASUREMENTS)
    assert expected(["cold"], quick=False) == {"cold": EXPECTED["cold"][0]}
