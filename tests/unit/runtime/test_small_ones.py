from __future__ import annotations

import time

from agentbus.runtime import exits
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.tokens import SystemTokens


def test_the_clock_reads_both_clocks():
    before = time.monotonic(), time.time()
    now = SystemClock().now()
    after = time.monotonic(), time.time()
    assert before[0] <= now.monotonic <= after[0]
    assert before[1] <= now.wall <= after[1]


def test_tokens_are_32_hexadecimal_digits_and_differ():
    tokens = {SystemTokens().token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 32 and int(token, 16) >= 0 for token in tokens)


def test_exit_codes_differ():
    codes = [value for name, value in vars(exits).items() if name.isupper()]
    assert len(codes) == len(set(codes)) == 9
