from __future__ import annotations

import pytest

from bench.soak.watch import GROWN_FILES, Growth

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("memory", "files", "budget", "grew"),
    [
        ((20, 20), (10, 10), 0, False),
        ((20, 27), (10, 10), 0, False),
        ((20, 29), (10, 10), 0, True),
        ((100, 120), (10, 10), 0, False),
        ((100, 130), (10, 10), 0, True),
        ((40, 60), (10, 10), 64, False),
        ((40, 70), (10, 10), 64, True),
        ((20, 20), (10, 10 + GROWN_FILES), 0, False),
        ((20, 20), (10, 11 + GROWN_FILES), 0, True),
    ],
)
def test_growth_is_more_than_noise_and_more_than_a_budget(memory, files, budget, grew):
    before, after = memory
    growth = Growth("writer", (before * MIB, after * MIB), files, budget * MIB)
    assert growth.is_growth is grew
