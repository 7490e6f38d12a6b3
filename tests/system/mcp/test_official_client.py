"""The official SDK's client, at each revision in turn, talks with another one through the bus.

What passes is recorded below the client, and validated with the reference types of the revision.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from jsonschema import Draft202012Validator
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage
from mcp_types import methods
from mcp_types.version import (
    KNOWN_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from tests.support.daemon import Daemon

BOUND = 60.0

CONTENTS = [
    "",
    "plain",
    "\U0001f469‍\U0001f4bb é ẹ́ שלום مرحبا",
    "line\u2028separator\u2029 \x00\x1f\x7f \\ \" ' </script> \r\n\t",
    '"}]}\n{"jsonrpc":"2.0","id":1,"result":{}}',
]


class Recorded:
    """A client session, and every line that it was sent."""

    def __init__(self, session: ClientSession, revision: str) -> None:
        self.session = session
        self.revision = revision
        self.asked: dict[Any, str] = {}
        self.lines: list[types.JSONRPCMessage] = []
        self.schemas: dict[str, Any] = {}

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result, which is also the text, and conforms to the tool's schema."""
        result = await self.session.call_tool(tool, arguments)
        assert isinstance(result, types.CallToolResult)
        (text,) = result.content
        assert isinstance(text, types.TextContent)
        document: dict[str, Any] = json.loads(text.text)
        if self.revision in ("2024-11-05", "2025-03-26"):
            assert result.structured_content is None
        else:
            assert result.structured_content == document
        assert not result.is_error, document
        Draft202012Validator(self.schemas.get(tool, {})).validate(document)
        return document

    async def fail(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error of a call, which is whole as text."""
        result = await self.session.call_tool(tool, arguments)
        assert result.is_error
        error: dict[str, Any] = json.loads(result.content[0].text)["error"]
        return error

    async def list_tools(self) -> list[types.Tool]:
        listed = await self.session.list_tools()
        self.schemas = {tool.name: tool.output_schema or {} for tool in listed.tools}
        return listed.tools

    def validate(self) -> int:
        """Checks all results that came; how many."""
        checked = 0
        for message in self.lines:
            if isinstance(message, types.JSONRPCResponse):
                method = self.asked[message.id]
                methods.validate_server_result(method, self.revision, message.result)
                methods.parse_server_result(method, self.revision, message.result)
                checked += 1
            elif isinstance(message, types.JSONRPCNotification):
                methods.parse_server_notification(message.method, self.revision, message.params)
        return checked


@asynccontextmanager
async def connect(bus: Daemon, name: str, revision: str) -> AsyncIterator[Recorded]:
    """A client of an adapter with a session of this name."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "agentbus", "mcp", "--application", "sdk", "--session", name],
        env=dict(bus.environment),
    )
    async with AsyncExitStack() as stack:
        read, write = await stack.enter_async_context(stdio_client(server))
        group = await stack.enter_async_context(anyio.create_task_group())
        into, received = anyio.create_memory_object_stream[SessionMessage | Exception](64)
        sent, out_of = anyio.create_memory_object_stream[SessionMessage](64)
        session = await stack.enter_async_context(ClientSession(received, sent))
        recorded = Recorded(session, revision)

        async def listen() -> None:
            async with into:
                async for message in read:
                    assert isinstance(message, SessionMessage), message
                    recorded.lines.append(message.message)
                    await into.send(message)

        async def speak() -> None:
            async with out_of:
                async for message in out_of:
                    if isinstance(message.message, types.JSONRPCRequest):
                        recorded.asked[message.message.id] = message.message.method
                    await write.send(message)

        group.start_soon(listen)
        group.start_soon(speak)
        await greet(session, revision)
        await recorded.list_tools()
        yield recorded
        group.cancel_scope.cancel()


async def greet(session: ClientSession, revision: str) -> None:
    """The client's own way into the era, at exactly this revision."""
    if revision in MODERN_PROTOCOL_VERSIONS:
        await session.discover()
        return
    request = types.InitializeRequest(
        params=types.InitializeRequestParams(
            protocol_version=revision,
            capabilities=types.ClientCapabilities(),
            client_info=types.Implementation(name="sdk", version="1"),
        )
    )
    result = await session.send_request(request, types.InitializeResult)
    assert result.protocol_version == revision
    session.adopt(result)
    await session.send_notification(types.InitializedNotification())


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with anyio.fail_after(BOUND):
            await test()

    anyio.run(bounded)


async def receive(client: Recorded, count: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    while len(messages) < count:
        messages += (await client.call("recv", wait_seconds=20))["messages"]
    return messages


@pytest.mark.parametrize("revision", KNOWN_PROTOCOL_VERSIONS)
def test_two_clients_talk_both_ways(bus: Daemon, revision: str) -> None:
    async def talk() -> None:
        async with (
            connect(bus, f"one-{revision}", revision) as one,
            connect(bus, f"two-{revision}", LATEST_HANDSHAKE_VERSION) as two,
        ):
            names = [(await each.call("whoami"))["display_name"] for each in (one, two)]
            assert names[0] != names[1]
            for sender, receiver, name in ((one, two, names[0]), (two, one, names[1])):
                for content in CONTENTS:
                    await sender.call("send", channel="general", content=content)
                messages = await receive(receiver, len(CONTENTS))
                assert [message["content"] for message in messages] == CONTENTS
                assert {message["sender"] for message in messages} == {name}
            assert one.validate() >= 9
            assert two.validate() >= 9

    run(talk)


@pytest.mark.parametrize("revision", KNOWN_PROTOCOL_VERSIONS)
def test_every_tool_answers_as_its_schema_says(bus: Daemon, revision: str) -> None:
    async def use() -> None:
        async with connect(bus, f"tools-{revision}", revision) as client:
            channel = f"tools/{revision}"
            assert (await client.call("create_channel", name=channel))["created"] is True
            assert (await client.call("create_channel", name=channel))["created"] is False
            subscribed = await client.call("subscribe", channel=channel, include_own=True)
            assert (subscribed["position"], subscribed["created"]) == (0, True)
            references = [
                {"kind": "url", "value": "https://example.org/ ä"},
                {"kind": "unix_path", "value": "/tmp/a b/ü"},
                {"kind": "windows_path", "value": "C:\\Users\\x\\y.txt"},
            ]
            sent = await client.call(
                "send",
                channel=channel,
                content="all of it",
                type="question",
                reply_to="unknown",
                metadata={"a": 1, "b": "x", "c": None, "d": 1.5, "e": True},
                references=references,
                message_id=f"id-{revision}",
            )
            assert (sent["message_id"], sent["duplicate"]) == (f"id-{revision}", False)
            (message,) = await receive(client, 1)
            assert message["references"] == references
            assert message["metadata"] == {"a": 1, "b": "x", "c": None, "d": 1.5, "e": True}
            history = await client.call("history", channel=channel)
            assert history == {"messages": [message], "more": False}
            listed = await client.call("list_channels")
            (entry,) = [each for each in listed["channels"] if each["name"] == channel]
            assert (entry["messages"], entry["undelivered"]) == (1, 0)
            assert (await client.call("unsubscribe", channel=channel))["removed"] is True
            assert client.validate() >= 8

    run(use)


@pytest.mark.parametrize("revision", KNOWN_PROTOCOL_VERSIONS)
def test_failures_are_results_that_say_what_to_do(bus: Daemon, revision: str) -> None:
    async def fail() -> None:
        async with connect(bus, f"fail-{revision}", revision) as client:
            error = await client.fail("send", channel="nowhere", content="x")
            assert (error["code"], error["retryable"]) == ("not_found", False)
            error = await client.fail("recv", max_messages=5000)
            assert error["code"] == "invalid_argument"
            assert "1 to 1000" in error["message"]
            error = await client.fail("send", channel="general", content="x" * 70_000)
            assert error["code"] == "message_too_large"
            client.validate()

    run(fail)


def test_ping_is_answered_during_a_recv(bus: Daemon) -> None:
    async def ping() -> None:
        async with (
            connect(bus, "ping", LATEST_HANDSHAKE_VERSION) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(client.session.call_tool, "recv", {"wait_seconds": 50})
            with anyio.fail_after(10):
                await client.session.send_ping()
            group.cancel_scope.cancel()

    run(ping)


def test_a_call_given_up_by_its_client_is_no_delivery(bus: Daemon) -> None:
    async def give_up() -> None:
        async with (
            connect(bus, "impatient", LATEST_HANDSHAKE_VERSION) as client,
            connect(bus, "sender", LATEST_HANDSHAKE_VERSION) as sender,
        ):
            await client.call("whoami")
            with anyio.move_on_after(0.3):
                await client.session.call_tool("recv", {"wait_seconds": 50})
            await sender.call("send", channel="general", content="kept")
            (message,) = await receive(client, 1)
            assert message["content"] == "kept"

    run(give_up)


def test_a_subscription_is_acknowledged_and_stays_quiet(bus: Daemon) -> None:
    from mcp.client.subscriptions import listen

    async def subscribe() -> None:
        async with connect(bus, "listener", LATEST_MODERN_VERSION) as client:
            async with listen(client.session, tools_list_changed=True) as subscription:
                assert not subscription.honored.tools_list_changed
                assert (await client.call("whoami"))["application"] == "sdk"
            client.validate()

    run(subscribe)
