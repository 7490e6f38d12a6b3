"""Hooks name the caller of a call that is to come."""

from __future__ import annotations

from agentbus.adapter.bindings import LIFE_SECONDS, MAX_BINDINGS, Bindings, Thread


def test_a_call_finds_its_own_binding_as_often_as_it_comes():
    bindings = Bindings()
    bindings.add("t1", Thread("r"), 0)
    bindings.add("t2", Thread("r", "c", "review"), 0)
    for _ in range(2):
        assert bindings.find("t2", 1) == Thread("r", "c", "review")
        assert bindings.find("t1", 1) == Thread("r")


def test_other_calls_find_nothing():
    bindings = Bindings()
    bindings.add("t1", Thread("r"), 0)
    for other in ("t2", None, 5, ["t1"], {}):
        assert bindings.find(other, 1) is None


def test_a_binding_outlives_a_user_who_is_asked_for_permission_and_then_expires():
    bindings = Bindings()
    bindings.add("t", Thread("r"), 0)
    assert bindings.find("t", LIFE_SECONDS - 1) is not None
    assert bindings.find("t", LIFE_SECONDS) is None
    bindings.add("u", Thread("r"), LIFE_SECONDS)
    assert len(bindings) == 1


def test_bindings_are_bounded_and_the_oldest_go():
    bindings = Bindings()
    for number in range(MAX_BINDINGS + 5):
        bindings.add(str(number), Thread("r"), 0)
    assert len(bindings) == MAX_BINDINGS
    assert bindings.find("4", 0) is None
    assert bindings.find("5", 0) is not None


def test_binding_again_replaces_and_renews():
    bindings = Bindings()
    bindings.add("t", Thread("old"), 0)
    bindings.add("t", Thread("new"), 10)
    assert bindings.find("t", LIFE_SECONDS + 5) == Thread("new")
