"""Counting what follows cursors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbus.model.ids import ChannelId, Seq, SessionId
from agentbus.store.write import counts, gaps
from agentbus.store.write.counts import Standing
from tests.support.writer_world import World

SENDERS = [0, 1, 1, 2, 0, 0, 1, 2, 2, 0]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two channels; in the first position 3 is missing."""
    with World(tmp_path_factory.mktemp("counts")) as world:
        who = [world.register(f"n{number}") for number in range(3)]
        for channel in ("general", "memory"):
            world.ask(
                *(
                    world.append(who[sender].attachment, f"{channel}{place}", channel=channel)
                    for place, sender in enumerate(SENDERS)
                )
            )
        with world.store.transaction():
            world.store._connection.execute("DELETE FROM messages WHERE message_id = 'general2'")
        yield world


_standings = st.lists(
    st.builds(
        Standing,
        st.sampled_from([ChannelId(1), ChannelId(2)]),
        st.integers(0, 11).map(Seq),
        st.integers(0, 4).map(SessionId),
    ),
    max_size=12,
)


@given(standings=_standings)
@settings(deadline=None)
def test_any_cursors_are_counted_together(filled: World, standings: list[Standing]) -> None:
    def expected(standing: Standing) -> int:
        return sum(
            1
            for seq, sender in enumerate(SENDERS, start=1)
            if seq > standing.position
            and sender + 1 != standing.own
            and (standing.channel_id, seq) != (1, 3)
        )

    with filled.store.snapshot():
        found = filled.store.counts.undelivered(standings)
    assert found == [expected(standing) for standing in standings]


def test_counting_looks_at_no_row(world: World) -> None:
    for statement in (counts.COUNT_LIVE, counts.SELECT_OWN, gaps.SELECT_NEXT):
        plan = world.rows("EXPLAIN QUERY PLAN " + statement, *[1] * statement.count("?"))
        assert "SEARCH messages USING COVERING INDEX messages_by_position" in plan[0][3], plan
