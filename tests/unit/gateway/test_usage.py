"""What processes take."""

from __future__ import annotations

import os
import time

from agentbus.gateway.usage import Usages


def test_a_process_is_measured_and_one_that_is_gone_is_left_out() -> None:
    usages = Usages()
    own = os.getpid()
    first = usages.measure([own, 2**30], time.time())
    assert list(first) == [own]
    assert first[own].rss_bytes > 1_000_000
    assert 0 <= first[own].cpu_percent < 10_000
    again = usages.measure([own], time.time())
    assert again[own].cpu_percent == first[own].cpu_percent, "too soon to tell"
    later = usages.measure([own], time.time() + 1000)
    assert later[own].cpu_percent < 1
