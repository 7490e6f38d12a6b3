"""What all tests share: hypothesis profiles, and a home that is nobody's."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session", autouse=True)
def _nobodys_home() -> Iterator[None]:
    """No test, and no process a test starts, can reach the bus or files of whoever runs it.

    Short, since socket paths are limited to 104 bytes.
    """
    home = tempfile.mkdtemp(prefix="ab-home-", dir="/tmp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", home)
        patch.setenv("AGENTBUS_RUNTIME_DIR", str(Path(home, "run")))
        patch.delenv("AGENTBUS_CONFIG", raising=False)
        patch.delenv("AGENTBUS_TEST", raising=False)
        yield
    shutil.rmtree(home, ignore_errors=True)
