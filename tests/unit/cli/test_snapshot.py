from __future__ import annotations

import msgspec
import pytest

from agentbus.cli.snapshot import Snapshot, read


def test_missing_members_have_defaults_and_unknown_ones_are_passed_over():
    assert read({"state": "stopped", "of a later version": {}}) == Snapshot(state="stopped")


def test_a_member_of_another_type_is_refused():
    with pytest.raises(msgspec.ValidationError, match="uptime_s"):
        read({"state": "ready", "uptime_s": "long"})
