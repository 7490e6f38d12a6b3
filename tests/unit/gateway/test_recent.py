"""What is remembered is without holes, bounded, and found from any position in it."""

from __future__ import annotations

import random

from agentbus.gateway import recent
from agentbus.gateway.recent import Block, Recent, cut, join
from agentbus.model.ids import ChannelId, Seq
from tests.support.gateway_rig import GENERAL, MEMORY, entries


def blocks(first: int, last: int, most: int = 3, padding: int = 0) -> list[Block]:
    return cut(entries(first, last, padding=padding), most)


def seqs(recent: Recent, position: int, channel: ChannelId = GENERAL) -> list[int]:
    return [entry.seq for block in recent.after(channel, Seq(position)) for entry in block.entries]


def test_blocks_hold_everything_once_within_their_bounds() -> None:
    rng = random.Random(4)
    for _ in range(50):
        count, most = rng.randint(1, 40), rng.randint(1, 10)
        padding = rng.choice([0, 1_000, recent.BLOCK_BYTES // 3, recent.BLOCK_BYTES])
        made = blocks(1, count, most, padding)
        assert [each.seq for block in made for each in block.entries] == list(range(1, count + 1))
        assert all(len(block.entries) <= most for block in made)
        assert all(len(b.entries) == 1 or b.bytes <= recent.BLOCK_BYTES for b in made)
        assert len(made) <= 2 * max(count / most, sum(b.bytes for b in made) / 200_000) + 1


def test_a_block_is_joined_once() -> None:
    (block,) = blocks(1, 3)
    assert block.body == join(entries(1, 3))
    assert block.body is block.body


def test_what_follows_is_found_from_each_position_that_is_kept() -> None:
    kept = Recent()
    kept.add(GENERAL, blocks(11, 17))
    kept.add(GENERAL, blocks(18, 20))
    assert seqs(kept, 10) == seqs(kept, 11) == seqs(kept, 12) == list(range(11, 21))
    assert seqs(kept, 13) == list(range(14, 21))
    assert seqs(kept, 19) == [18, 19, 20]
    assert seqs(kept, 20) == []
    assert seqs(kept, 9) == []
    assert seqs(kept, 10, MEMORY) == []


def test_what_is_before_a_hole_is_forgotten() -> None:
    kept = Recent()
    kept.add(GENERAL, blocks(1, 5))
    kept.add(GENERAL, blocks(7, 8))
    assert seqs(kept, 0) == seqs(kept, 5) == []
    assert seqs(kept, 6) == [7, 8]


def test_a_block_with_a_hole_is_not_remembered_and_ends_what_was() -> None:
    kept = Recent()
    kept.add(GENERAL, blocks(1, 2))
    kept.add(GENERAL, [Block([*entries(3, 3), *entries(5, 5)])])
    kept.add(GENERAL, blocks(6, 6))
    assert seqs(kept, 2) == []
    assert seqs(kept, 5) == [6]


def test_the_oldest_of_all_channels_goes_first() -> None:
    size = blocks(1, 1, padding=1000)[0].bytes
    kept = Recent(most=4 * size)
    kept.add(GENERAL, blocks(1, 2, 1, 1000))
    kept.add(MEMORY, blocks(1, 2, 1, 1000))
    kept.add(GENERAL, blocks(3, 3, 1, 1000))
    assert seqs(kept, 0) == []
    assert seqs(kept, 1) == [2, 3]
    assert seqs(kept, 0, MEMORY) == [1, 2]
    kept.add(GENERAL, blocks(5, 7, 1, 1000))
    kept.add(MEMORY, blocks(3, 3, 1, 1000))
    assert seqs(kept, 4) == [5, 6, 7]
    assert seqs(kept, 1, MEMORY) == []
    assert seqs(kept, 2, MEMORY) == [3]


def test_nothing_is_left_once_it_is_forgotten() -> None:
    kept = Recent()
    kept.add(GENERAL, blocks(1, 5))
    kept.forget()
    assert seqs(kept, 0) == []
    kept.add(GENERAL, blocks(6, 6))
    assert seqs(kept, 5) == [6]
