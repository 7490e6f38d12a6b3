"""Positions of the bus are positions of the stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentbus.mirror import keys
from agentbus.model.ids import ChannelId, Seq


@given(st.integers(1, 2**53))
def test_an_entry_id_names_its_position(seq: int) -> None:
    assert keys.position(keys.entry_id(Seq(seq))) == seq


def test_each_channel_has_a_stream() -> None:
    assert keys.stream(ChannelId(12)) == b"s:12"
