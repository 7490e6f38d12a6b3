"""Messages by their ids, whatever Redis knows of them yet."""

from __future__ import annotations

import pytest

from agentbus.wire.error_codes import Failure
from tests.support.gateway_rig import Rig, envelope


@pytest.mark.parametrize(
    ("method", "key", "message"), [("memory.get", "memory_id", False), ("read", "message_id", True)]
)
def test_what_is_found_is_answered_as_the_bytes_it_is(method: str, key: str, message: bool) -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.ask(connection, method, attachment=attachment, **{key: "k"})
    asked = rig.found(envelope(5))
    assert (asked.identity, asked.message) == ("k", message)
    assert b'"result":{"message":' + envelope(5) + b"}" in rig.raw[connection][-1]


def test_what_is_not_there_is_not_found() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = rig.ask(connection, "memory.get", attachment=attachment, memory_id="k")
    rig.found(None)
    error = rig.result(connection, request)
    assert error["code"] == "not_found"
    assert "'k'" in error["message"]


def test_a_database_that_cannot_be_read_is_no_missing_message() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = rig.ask(connection, "read", attachment=attachment, message_id="k")
    rig.found(None, Failure("storage_error", "disk I/O error"))
    error = rig.result(connection, request)
    assert error["code"] == "unavailable"
    assert "disk I/O error" in error["message"]


def test_a_name_that_is_none_is_refused() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    error = rig.call(connection, "read", attachment=attachment, message_id="")
    assert error["code"] == "invalid_argument"


def test_while_the_bus_recovers_nothing_is_read() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.project(ready=False)
    error = rig.call(connection, "memory.get", attachment=attachment, memory_id="k")
    assert error["code"] == "recovering"


def test_reads_under_way_are_bounded() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    for _ in range(4):
        rig.ask(connection, "memory.get", attachment=attachment, memory_id="k")
    error = rig.call(connection, "memory.get", attachment=attachment, memory_id="k")
    assert error["code"] == "rate_limited"
    rig.found(None)
    rig.ask(connection, "memory.get", attachment=attachment, memory_id="k")
    assert len(rig.finds) == 4
