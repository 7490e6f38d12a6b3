"""The table is whole and its groups mean what they say."""

from __future__ import annotations

import pytest

from agentbus.errors import InternalError
from agentbus.projector import states
from agentbus.projector.states import LIVE, RECOVERING, TRANSITIONS, State


def test_every_state_is_in_the_table_and_can_be_reached() -> None:
    assert TRANSITIONS.keys() == set(State)
    assert set().union(*TRANSITIONS.values()) == set(State)


def test_groups_do_not_overlap() -> None:
    assert not set(LIVE) & set(RECOVERING)
    assert State.WAITING not in (*LIVE, *RECOVERING)


def test_every_state_but_the_last_can_lose_its_server() -> None:
    assert [s for s in State if State.WAITING not in TRANSITIONS[s]] == [State.STOPPING]


def test_a_transition_outside_the_table_is_a_fault() -> None:
    with pytest.raises(InternalError, match="waiting to ready"):
        states.check(State.WAITING, State.READY)
