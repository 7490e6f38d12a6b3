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
    HANDSHAKE_PROTOCOL_VERSIONS,
    KNOWN_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from tests.support.daemon import Daemon

BOUND = 60.0

INBOX = "agentbus://inbox"

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
        self._heard = anyio.Event()

    def hear(self, message: types.JSONRPCMessage) -> None:
        """A line has come."""
        self.lines.append(message)
        self._heard.set()
        self._heard = anyio.Event()

    async def heard(self) -> None:
        """Returns with the next line."""
        await self._heard.wait()

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
        document = json.loads(result.content[0].text)
        Draft202012Validator(self.schemas.get(tool, {})).validate(document)
        error: dict[str, Any] = document["error"]
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
                    recorded.hear(message.message)
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
            found = await client.call("search", query='"all of it"', channels=[channel])
            assert [each["message_id"] for each in found["results"]] == [message["message_id"]]
            assert "all of it" in found["results"][0]["snippet"]
            read = await client.call("read", message_id=message["message_id"], offset=4)
            assert (read["content"], read["content_length"]) == ("of it", 9)
            who = await client.call("whoami")
            agents = (await client.call("discover", agent=who["agent"]))["agents"]
            assert who["display_name"] in {each["display_name"] for each in agents[0]["sessions"]}
            assert (await client.call("unsubscribe", channel=channel))["removed"] is True
            bound = {"session_id": "S", "tool_use_id": "t"}
            assert await client.call("bind_caller", **bound) == {"bound": True}
            assert client.validate() >= 12

    run(use)


@pytest.mark.parametrize("revision", KNOWN_PROTOCOL_VERSIONS)
def test_memories_are_made_changed_told_and_deleted(bus: Daemon, revision: str) -> None:
    async def remember() -> None:
        async with (
            connect(bus, f"author-{revision}", revision) as author,
            connect(bus, f"reader-{revision}", revision) as reader,
        ):
            channel = f"memory/{revision}"
            created = await author.call("create_channel", name=channel, kind="memory")
            assert created["kind"] == "memory"
            await reader.call("subscribe", channel=channel)
            sent = await author.call("send", channel=channel, content="roses are red")
            memory = sent["memory_id"]
            (message,) = await receive(reader, 1)
            assert (message["memory_id"], message["revision"]) == (memory, 1)
            edited = await author.call("memory_edit", memory_id=memory, content="roses are blue")
            assert (edited["revision"], edited["replaced_revision"]) == (2, 1)
            (notice,) = (await reader.call("recv", wait_seconds=20))["notices"]
            assert (notice["kind"], notice["revision"]) == ("memory_changed", 2)
            current = await reader.call("memory_get", memory_id=memory)
            assert current == notice["message"]
            listed = await reader.call("memory_list", channel=channel)
            assert listed == {"memories": [current]}
            deleted = await author.call("memory_delete", memory_id=memory)
            assert deleted["deleted_revision"] == 2
            (notice,) = (await reader.call("recv", wait_seconds=20))["notices"]
            assert (notice["kind"], notice["memory_id"]) == ("memory_deleted", memory)
            assert (await reader.fail("memory_get", memory_id=memory))["code"] == "not_found"
            author.validate()
            reader.validate()

    run(remember)


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


async def inbox(client: Recorded) -> dict[str, int]:
    """The counts that the resource gives."""
    result = await client.session.read_resource(INBOX)
    (contents,) = result.contents
    assert isinstance(contents, types.TextResourceContents)
    channels = json.loads(contents.text)["channels"]
    return {each["channel"]: each["undelivered"] for each in channels}


@pytest.mark.parametrize("revision", KNOWN_PROTOCOL_VERSIONS)
def test_the_inbox_is_a_resource(bus: Daemon, revision: str) -> None:
    async def look() -> None:
        async with (
            connect(bus, f"inbox-{revision}", revision) as client,
            connect(bus, f"filler-{revision}", revision) as sender,
        ):
            (resource,) = (await client.session.list_resources()).resources
            assert str(resource.uri) == INBOX
            assert (await client.session.list_resource_templates()).resource_templates == []
            assert await inbox(client) == {"general": 0, "memory": 0}
            await sender.call("send", channel="general", content="1")
            assert await inbox(client) == {"general": 1, "memory": 0}
            await receive(client, 1)
            assert await inbox(client) == {"general": 0, "memory": 0}
            client.validate()

    run(look)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("revision", HANDSHAKE_PROTOCOL_VERSIONS)
def test_whoever_has_subscribed_is_told_of_changes(bus: Daemon, revision: str) -> None:
    async def subscribe() -> None:
        async with (
            connect(bus, f"told-{revision}", revision) as client,
            connect(bus, f"teller-{revision}", revision) as sender,
        ):
            await client.call("whoami")
            await client.session.subscribe_resource(INBOX)
            await sender.call("send", channel="general", content="1")
            await updated(client)
            await client.session.unsubscribe_resource(INBOX)
            client.validate()

    run(subscribe)


async def updated(client: Recorded) -> None:
    """Returns when the client was told of a change of the inbox."""
    while not any(
        isinstance(line, types.JSONRPCNotification)
        and line.method == "notifications/resources/updated"
        and line.params == {"uri": INBOX}
        for line in client.lines
    ):
        await client.heard()


def test_whoever_listens_in_the_modern_era_is_told_of_changes(bus: Daemon) -> None:
    from mcp.client.subscriptions import ResourceUpdated, listen

    async def subscribe() -> None:
        async with (
            connect(bus, "listener", LATEST_MODERN_VERSION) as client,
            connect(bus, "speaker", LATEST_MODERN_VERSION) as sender,
        ):
            await client.call("whoami")
            wanted = {"tools_list_changed": True, "resource_subscriptions": [INBOX]}
            async with listen(client.session, **wanted) as subscription:
                assert not subscription.honored.tools_list_changed
                assert subscription.honored.resource_subscriptions == [INBOX]
                await sender.call("send", channel="general", content="1")
                async for event in subscription:
                    assert event == ResourceUpdated(uri=INBOX)
                    break
            client.validate()

    run(subscribe)
