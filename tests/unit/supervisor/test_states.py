from __future__ import annotations

from itertools import product

import pytest

from agentbus.errors import InternalError
from agentbus.supervisor.states import ALIVE, ENDING, SERVING, TRANSITIONS, State, moved


def test_every_state_has_its_row():
    assert set(TRANSITIONS) == set(State)


def test_groups_do_not_overlap_and_make_up_the_living():
    assert not SERVING & ENDING
    assert SERVING | ENDING == ALIVE
    assert set(State) - ALIVE == {State.ABSENT}


def test_every_living_state_may_end_in_death():
    assert all(State.ABSENT in TRANSITIONS[state] for state in ALIVE)


def test_the_ending_never_serve_again():
    assert not any(TRANSITIONS[state] & SERVING for state in ENDING)


def test_every_state_can_be_reached():
    reached, new = set(), {State.ABSENT}
    while new:
        reached |= new
        new = {to for state in new for to in TRANSITIONS[state]} - reached
    assert reached == set(State)


@pytest.mark.parametrize(("old", "new"), list(product(State, State)))
def test_only_what_the_table_has_is_a_move(old, new):
    if new in TRANSITIONS[old]:
        assert moved("writer", old, new) is new
    else:
        with pytest.raises(InternalError, match=f"writer .* {old.value} to {new.value}"):
            moved("writer", old, new)
