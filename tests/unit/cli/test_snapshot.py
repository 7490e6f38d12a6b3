from __future__ import annotations

import msgspec
import pytest

from agentbus.cli.snapshot import Redis, Session, Snapshot, read


def test_missing_members_have_defaults_and_unknown_ones_are_passed_over():
    assert read({"state": "stopped", "of a later version": {}}) == Snapshot(state="stopped")


def test_a_member_of_another_type_is_refused():
    with pytest.raises(msgspec.ValidationError, match="uptime_s"):
        read({"state": "ready", "uptime_s": "long"})


def test_what_is_not_known_is_as_if_it_were_absent():
    document = {"state": "recovering", "redis": {"healthy": False, "flavour": None}}
    assert read(document).redis == Redis(healthy=False)
    assert read({"totals": {"messages": None, "accepted": 1}}).totals == {"accepted": 1}
    assert read({"sessions": [{"display_name": "Ada", "repository": None}]}).sessions == [
        Session(display_name="Ada")
    ]
