"""Everything we send validates against the official types of the revision in use."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from mcp_types import jsonrpc, methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from agentbus.adapter import tools
from agentbus.config import Settings
from agentbus.errors import RateLimited
from agentbus.wire.mcp import McpServer, Say, ToolCall
from agentbus.wire.mcp.responses import ServerInfo

MODERN = "2026-07-28"


class Client:
    """Speaks one revision, and checks all that comes back."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.server = McpServer(
            ServerInfo("agentbus", "agentbus", "1.0", tools.INSTRUCTIONS), tools.table(Settings())
        )
        if revision in HANDSHAKE_PROTOCOL_VERSIONS:
            client = {"name": "t", "version": "1"}
            self.ask("initialize", protocolVersion=revision, capabilities={}, clientInfo=client)

    def write(self, method: str, **params: Any) -> list[Any]:
        if self.revision == MODERN:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        methods.validate_client_request(method, self.revision, params)
        document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.server.feed(msgspec.json.encode(document) + b"\n")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        (event,) = [each for each in self.write(method, **params) if isinstance(each, Say)]
        return self.check(method, event.line.data)

    def check(self, method: str, line: bytes) -> dict[str, Any]:
        document = msgspec.json.decode(line)
        jsonrpc.jsonrpc_message_adapter.validate_python(document)
        result: dict[str, Any] = document["result"]
        methods.validate_server_result(method, self.revision, result)
        methods.parse_server_result(method, self.revision, result)
        return result

    def call(self, name: str = "whoami") -> int:
        (event,) = self.write("tools/call", name=name, arguments={})
        assert isinstance(event, ToolCall)
        return event.call


@pytest.fixture(params=KNOWN_PROTOCOL_VERSIONS)
def client(request: pytest.FixtureRequest) -> Client:
    return Client(request.param)


def test_the_handshake_validates(client):
    assert client.revision in KNOWN_PROTOCOL_VERSIONS


def test_the_tools_validate_and_their_schemas_are_schemas(client):
    listed = client.ask("tools/list")["tools"]
    assert len(listed) == len(tools.table(Settings()))
    for tool in listed:
        Draft202012Validator.check_schema(tool["inputSchema"])
        Draft202012Validator.check_schema(tool.get("outputSchema", {}))


def test_nothing_is_sent_that_the_revision_would_drop(client):
    """The reference types ignore what they do not know: a dump must give all of it back."""
    result = client.ask("tools/list")
    shaped = methods.serialize_server_result("tools/list", client.revision, result)
    assert shaped == result


def test_results_and_failures_validate(client):
    answer = client.server.answer(client.call(), b'{"display_name":"Sam"}')
    assert answer is not None
    client.check("tools/call", answer.data)
    client.server.settle(answer.calls)
    failure = client.server.fail(client.call(), RateLimited("slowly", retry_after_ms=5))
    assert failure is not None
    client.check("tools/call", failure.data)


def test_ping_validates_where_it_exists(client):
    if client.revision != MODERN:
        assert client.ask("ping") == {}


def test_discovery_and_subscriptions_validate():
    client = Client(MODERN)
    client.ask("server/discover")
    (event,) = client.write("subscriptions/listen", notifications={"toolsListChanged": True})
    note = msgspec.json.decode(event.line.data)
    methods.parse_server_notification(note["method"], MODERN, note["params"])
    (end,) = client.server.close()
    client.check("subscriptions/listen", end.data)


def test_an_unsupported_revision_is_the_error_that_the_reference_defines():
    import mcp_types._v2026_07_28 as v2026

    client = Client("2025-11-25")
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2030-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    document = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    (event,) = client.server.feed(msgspec.json.encode(document) + b"\n")
    reply = msgspec.json.decode(event.line.data)
    TypeAdapter(v2026.UnsupportedProtocolVersionError).validate_python(reply)


@pytest.mark.parametrize("bad", [b"x", b"[]", b'{"jsonrpc":"2.0","id":3,"method":"x"}', b"{}"])
def test_errors_are_json_rpc_errors(bad):
    (event,) = Client("2025-11-25").server.feed(bad + b"\n")
    document = msgspec.json.decode(event.line.data)
    assert isinstance(
        jsonrpc.jsonrpc_message_adapter.validate_python(document), jsonrpc.JSONRPCError
    )
