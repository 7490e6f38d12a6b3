from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentbus.supervisor.handover import End, Handover

PEERS = {"a-b": ("a", "b"), "b-c": ("b", "c"), "c-a": ("c", "a")}
NAMES = ("a", "b", "c")


def test_the_first_forks_share_their_pairs_without_a_transfer():
    handover = Handover({"a-b": ("a", "b")})
    assert handover.fork("a", frozenset()) == ([End("a-b", 1, "a")], [])
    assert handover.fork("b", frozenset({"a"})) == ([End("a-b", 1, "b")], [])
    assert handover.due("a") is None


def test_a_successor_gets_a_fresh_pair_and_its_peer_is_handed_the_other_end():
    handover = Handover({"a-b": ("a", "b")})
    handover.fork("a", frozenset())
    handover.fork("b", frozenset({"a"}))
    assert handover.died("b") == []
    assert handover.fork("b", frozenset({"a"})) == ([End("a-b", 2, "b")], [])
    assert handover.due("a") == End("a-b", 2, "a")


def test_one_transfer_at_a_time():
    handover = Handover(PEERS)
    for name in NAMES:
        handover.fork(name, frozenset(NAMES))
    first = handover.due("a")
    assert first is not None
    assert handover.due("a") is None
    assert not handover.taken("a", first.link, first.number + 1)
    assert handover.due("a") is None
    assert handover.taken("a", first.link, first.number)
    assert handover.due("a") is not None


def test_a_transfer_not_begun_is_replaced_by_a_newer_one():
    handover = Handover({"a-b": ("a", "b")})
    handover.fork("b", frozenset({"a"}))
    given, dropped = handover.fork("b", frozenset({"a"}))
    assert given == [End("a-b", 2, "b")]
    assert dropped == [End("a-b", 1, "a")]
    assert handover.due("a") == End("a-b", 2, "a")


def test_what_led_to_a_dead_service_is_dropped():
    handover = Handover({"a-b": ("a", "b")})
    handover.fork("a", frozenset())
    assert handover.died("a") == [End("a-b", 1, "b")]


class Bus(RuleBasedStateMachine):
    """Services that are forked, die and take their links in any order, and the pairs they hold."""

    def __init__(self) -> None:
        super().__init__()
        self.handover = Handover(PEERS)
        self.living: dict[str, dict[str, int]] = {}
        self.in_flight: dict[str, End] = {}
        self.supervisor: Counter[End] = Counter()
        self.born: set[tuple[str, int]] = set()

    def _take(self, end: End) -> None:
        """The supervisor makes a pair when its first end is asked for."""
        if (end.link, end.number) not in self.born:
            self.born.add((end.link, end.number))
            for owner in PEERS[end.link]:
                self.supervisor[End(end.link, end.number, owner)] += 1
        assert self.supervisor[end] == 1, "given away twice"
        del self.supervisor[end]

    def _drop(self, ends: list[End]) -> None:
        for end in ends:
            self._take(end)

    @precondition(lambda self: len(self.living) < len(NAMES))
    @rule(data=st.data())
    def fork(self, data) -> None:
        name = data.draw(st.sampled_from([n for n in NAMES if n not in self.living]))
        given, dropped = self.handover.fork(name, frozenset(self.living))
        for end in given:
            assert end.owner == name
            self._take(end)
        self._drop(dropped)
        self.living[name] = {end.link: end.number for end in given}
        self._begin()

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def die(self, data) -> None:
        name = data.draw(st.sampled_from(sorted(self.living)))
        del self.living[name]
        self.in_flight.pop(name, None)
        self._drop(self.handover.died(name))

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def take(self, data) -> None:
        name = data.draw(st.sampled_from(sorted(self.in_flight)))
        end = self.in_flight.pop(name)
        self.living[name][end.link] = end.number
        assert self.handover.taken(name, end.link, end.number)
        self._begin()

    def _begin(self) -> None:
        for name in sorted(self.living):
            end = self.handover.due(name)
            if end is not None:
                self._take(end)
                self.in_flight[name] = end

    @invariant()
    def everyone_has_all_links(self) -> None:
        for name, held in self.living.items():
            assert set(held) == {link for link, peers in PEERS.items() if name in peers}

    @invariant()
    def when_nothing_is_under_way_the_living_are_connected(self) -> None:
        if self.in_flight:
            return
        for link, (one, other) in PEERS.items():
            if one in self.living and other in self.living:
                assert self.living[one][link] == self.living[other][link]

    @invariant()
    def the_supervisor_keeps_no_end_that_would_hide_a_death(self) -> None:
        """An end kept here is for somebody who does not run, or waits for its turn."""
        for end in self.supervisor:
            if self.supervisor[end]:
                assert end.owner not in self.living or end.owner in self.in_flight


Bus.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestBus = Bus.TestCase
