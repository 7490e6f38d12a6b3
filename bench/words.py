"""Texts whose words are as common as those of a language: few are everywhere, most are rare."""

from __future__ import annotations

import functools
import random
from typing import Final

WORDS: Final = 20_000
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


@functools.cache
def texts(count: int, size: int) -> list[str]:
    """So many texts of so many bytes, the same ones each time."""
    chance = random.Random(1)
    words = ["".join(chance.choices(LETTERS, k=chance.randint(2, 10))) for _ in range(WORDS)]
    total, weights = 0.0, []
    for place in range(1, WORDS + 1):
        total += 1 / place
        weights.append(total)
    return [
        " ".join(chance.choices(words, cum_weights=weights, k=size // 4))[:size].ljust(size, "x")
        for _ in range(count)
    ]
