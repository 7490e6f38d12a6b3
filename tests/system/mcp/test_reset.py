"""Adapters live through a reset of the bus, and nothing of the old one acts on the new one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentbus.client.client import Client
from tests.support.daemon import Daemon
from tests.support.stdio import Adapter, ToolError


@pytest.fixture
def bus() -> Iterator[Daemon]:
    """A running daemon of the test's own."""
    with Daemon() as daemon:
        daemon.start()
        yield daemon


def reset(bus: Daemon) -> None:
    """Returns when another bus is there."""
    before = bus.status()["instance"]
    with Client(bus.paths.socket) as client:
        client.hello()
        client.reset()
    bus.wait_until(lambda status: status["state"] == "ready" and status["instance"] != before)


def test_adapters_go_on_with_nothing_of_what_was(bus: Daemon) -> None:
    with (
        Adapter(bus.environment, "--application", "t", "--session", "reader") as reader,
        Adapter(bus.environment, "--application", "t", "--session", "sender") as sender,
    ):
        reader.call("whoami")
        sender.call("create_channel", name="old")
        reader.call("subscribe", channel="old")
        memory = sender.call("send", channel="memory", content="old")["memory_id"]
        for channel in ("old", "general"):
            sender.call("send", channel=channel, content="old")
        assert len(reader.call("recv", max_messages=1, wait_seconds=30)["messages"]) == 1
        while reader.call("recv", wait_seconds=1)["messages"]:
            pass
        waiting = reader.request("tools/call", name="recv", arguments={"wait_seconds": 50})
        reset(bus)
        bus.wait_until(lambda status: sum(each["attached"] for each in status["sessions"]) == 2)
        sent = sender.call("send", channel="general", content="new")
        assert sent["seq"] == 1
        result = reader.structured(reader.answer(waiting)["result"])
        assert [message["content"] for message in result["messages"]] == ["new"]
        channels = {each["channel"] for each in reader.call("whoami")["subscriptions"]}
        assert channels == {"general", "memory"}
        for tool, arguments in (
            ("memory_get", {"memory_id": memory}),
            ("send", {"channel": "old", "content": "x"}),
        ):
            with pytest.raises(ToolError) as refused:
                reader.call(tool, **arguments)
            assert refused.value.code == "not_found"


def test_an_id_of_the_old_bus_is_free_on_the_new_one(bus: Daemon) -> None:
    with Adapter(bus.environment, "--application", "t", "--session", "sender") as sender:
        given = {"channel": "general", "message_id": "mine"}
        sender.call("send", content="old", **given)
        reset(bus)
        again = sender.call("send", content="new", **given)
        assert (again["duplicate"], again["seq"]) == (False, 1)
