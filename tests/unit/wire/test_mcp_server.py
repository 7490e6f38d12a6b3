"""What the MCP state machine answers, line by line."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.errors import NotFound
from agentbus.wire.mcp import Cancelled, Greeted, McpServer, Say, Tool, ToolCall
from agentbus.wire.mcp.responses import ServerInfo
from agentbus.wire.mcp.server import MAX_CALLS, MAX_LISTENERS

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "1"},
}
OLD = ["2024-11-05", "2025-03-26"]
HANDSHAKE = [*OLD, "2025-06-18", "2025-11-25"]


def tool(name: str = "echo", **meta: Any) -> Tool:
    return Tool(
        name,
        "Echo",
        "says it again",
        {"type": "object", "properties": {}},
        {"type": "object"},
        {"readOnlyHint": True},
        meta or None,
    )


@pytest.fixture
def server() -> McpServer:
    return McpServer(
        ServerInfo("agentbus", "agentbus", "1.0", "how to"), [tool(always=True), tool("other")]
    )


def line(method: str, identifier: Any = None, **params: Any) -> bytes:
    document: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if identifier is not None:
        document["id"] = identifier
    return json.dumps(document).encode() + b"\n"


def said(events: list[Any]) -> list[Any]:
    return [msgspec.json.decode(event.line.data) for event in events if isinstance(event, Say)]


def ask(server: McpServer, method: str, identifier: Any = 1, **params: Any) -> dict[str, Any]:
    (reply,) = said(server.feed(line(method, identifier, **params)))
    return reply


def greet(server: McpServer, revision: str) -> dict[str, Any]:
    client = {"name": "old", "version": "1"}
    return ask(
        server, "initialize", 0, protocolVersion=revision, capabilities={}, clientInfo=client
    )


def call(server: McpServer, identifier: Any = 1, **params: Any) -> ToolCall:
    (event,) = server.feed(line("tools/call", identifier, **({"name": "echo"} | params)))
    assert isinstance(event, ToolCall)
    return event


# the handshake


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_known_revision_is_agreed_to(server, revision):
    assert greet(server, revision)["result"]["protocolVersion"] == revision


@pytest.mark.parametrize("revision", ["2026-07-28", "1999-01-01", "", "zzz"])
def test_any_other_revision_is_answered_with_the_latest_handshake(server, revision):
    assert greet(server, revision)["result"]["protocolVersion"] == "2025-11-25"


def test_initialize_without_a_revision_is_refused(server):
    assert ask(server, "initialize")["error"]["code"] == -32602


def test_the_client_is_known_from_the_handshake_on(server):
    events = server.feed(
        line("initialize", 1, protocolVersion="2025-06-18", clientInfo={"name": "codex"})
    )
    assert Greeted("codex") in events
    assert call(server, 2).client == "codex"


def test_titles_are_left_out_for_revisions_that_know_none(server):
    assert "title" not in greet(server, "2025-03-26")["result"]["serverInfo"]
    assert greet(server, "2025-06-18")["result"]["serverInfo"]["title"] == "agentbus"


# tools/list


@pytest.mark.parametrize(
    ("revision", "members"),
    [
        ("2024-11-05", {"name", "description", "inputSchema"}),
        ("2025-03-26", {"name", "description", "inputSchema", "annotations"}),
        (
            "2025-06-18",
            {"name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"},
        ),
    ],
)
def test_a_tool_has_exactly_what_the_revision_knows(server, revision, members):
    greet(server, revision)
    assert set(ask(server, "tools/list")["result"]["tools"][0]) == members


def test_the_list_is_one_page(server):
    greet(server, "2025-11-25")
    assert "nextCursor" not in ask(server, "tools/list")["result"]
    assert ask(server, "tools/list", cursor="x")["error"]["code"] == -32602


def test_tools_are_listed_before_any_handshake_too(server):
    assert len(ask(server, "tools/list")["result"]["tools"]) == 2


# results


def test_a_result_is_whole_as_text_and_as_structure(server):
    greet(server, "2025-06-18")
    answer = server.answer(call(server, "id").call, b'{"a":"\\"}]\\n"}')
    reply = msgspec.json.decode(answer.data)
    assert reply["id"] == "id"
    assert reply["result"]["structuredContent"] == {"a": '"}]\n'}
    (text,) = reply["result"]["content"]
    assert json.loads(text["text"]) == {"a": '"}]\n'}
    assert answer.data.count(b"\n") == 1
    assert "isError" not in reply["result"]


@pytest.mark.parametrize("revision", OLD)
def test_old_revisions_get_text_alone(server, revision):
    greet(server, revision)
    reply = msgspec.json.decode(server.answer(call(server).call, b'{"a":1}').data)
    assert set(reply["result"]) == {"content"}


def test_an_error_is_whole_as_text_and_as_structure(server):
    greet(server, "2025-06-18")
    reply = msgspec.json.decode(server.fail(call(server).call, NotFound("no such thing")).data)
    error = {"error": {"code": "not_found", "message": "no such thing", "retryable": False}}
    assert reply["result"]["isError"] is True
    assert reply["result"]["structuredContent"] == error
    assert json.loads(reply["result"]["content"][0]["text"]) == error


# calls


@pytest.mark.parametrize(
    "params",
    [
        {"name": "nope"},
        {"name": 5},
        {"name": None},
        {"name": "echo", "arguments": [1]},
        {"name": "echo", "arguments": "x"},
    ],
)
def test_a_call_that_is_none_is_a_protocol_error(server, params):
    (reply,) = said(server.feed(line("tools/call", 1, **params)))
    assert reply["error"]["code"] == -32602


def test_absent_and_null_arguments_are_none(server):
    assert call(server, 1).arguments == {}
    assert call(server, 2, arguments=None).arguments == {}


def test_an_id_that_is_open_is_refused_and_free_again_when_settled(server):
    first = call(server, 7)
    assert ask(server, "tools/call", 7, name="echo")["error"]["code"] == -32600
    assert ask(server, "ping", 7)["error"]["code"] == -32600
    server.answer(first.call, b"{}")
    server.settle([first.call])
    assert call(server, 7).call != first.call


def test_ids_may_be_strings_and_a_string_is_not_its_number(server):
    assert call(server, 1).call != call(server, "1").call


def test_a_flood_of_calls_is_refused_beyond_a_bound(server):
    for identifier in range(MAX_CALLS):
        call(server, identifier)
    assert "error" in ask(server, "tools/call", "more", name="echo")


# cancellation


def test_a_cancelled_call_is_told_until_it_is_settled(server):
    open_call = call(server, "a")
    cancel = line("notifications/cancelled", requestId="a", reason="no more")
    assert server.feed(cancel) == [Cancelled(open_call.call)]
    server.answer(open_call.call, b"{}")
    assert server.feed(cancel) == [Cancelled(open_call.call)]
    server.settle([open_call.call])
    assert server.feed(cancel) == []


def test_a_cancellation_of_nothing_is_nothing(server):
    for identifier in (1, "x", None, 1.5, [1], {}):
        assert server.feed(line("notifications/cancelled", requestId=identifier)) == []


# other methods


def test_ping_is_answered_in_the_handshake_era_alone(server):
    greet(server, "2025-11-25")
    open_call = call(server, 9)
    assert ask(server, "ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert ask(server, "ping", _meta=ENVELOPE)["error"]["code"] == -32601
    assert server.answer(open_call.call, b"{}") is not None


@pytest.mark.parametrize("method", ["resources/list", "prompts/list", "logging/setLevel", "x", ""])
def test_unknown_requests_are_refused_and_unknown_notifications_are_nothing(server, method):
    assert ask(server, method)["error"]["code"] == -32601
    assert server.feed(line(method)) == []


# the modern era


def test_discovery_names_the_revision_that_needs_no_handshake(server):
    result = ask(server, "server/discover", _meta=ENVELOPE)["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["resultType"] == "complete"
    assert result["instructions"] == "how to"


@pytest.mark.parametrize(
    "missing",
    ["io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"],
)
def test_half_an_envelope_is_refused_naming_what_lacks(server, missing):
    meta = {key: value for key, value in ENVELOPE.items() if key != missing}
    error = ask(server, "server/discover", _meta=meta)["error"]
    assert error["code"] == -32602
    assert missing in error["message"]


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
def test_modern_methods_without_an_envelope_are_refused(server, method):
    greet(server, "2025-11-25")
    assert ask(server, method)["error"]["code"] == -32602


@pytest.mark.parametrize("requested", ["2025-11-25", "2027-01-01", ""])
def test_an_unsupported_revision_is_told_what_is_supported(server, requested):
    meta = ENVELOPE | {"io.modelcontextprotocol/protocolVersion": requested}
    error = ask(server, "tools/list", _meta=meta)["error"]
    assert error["code"] == -32022
    assert error["data"]["requested"] == requested
    assert error["data"]["supported"][0] == "2026-07-28"


def test_a_revision_that_is_no_string_is_a_bad_parameter(server):
    meta = ENVELOPE | {"io.modelcontextprotocol/protocolVersion": 5}
    assert ask(server, "tools/list", _meta=meta)["error"]["code"] == -32602


def test_modern_results_say_that_they_are_complete_and_who_gave_them(server):
    result = ask(server, "tools/list", _meta=ENVELOPE)["result"]
    assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
    assert result["ttlMs"] > 0
    reply = msgspec.json.decode(server.answer(call(server, _meta=ENVELOPE).call, b"{}").data)
    assert reply["result"]["resultType"] == "complete"
    assert reply["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "agentbus"


def test_both_eras_may_be_spoken_in_turn_on_one_connection(server):
    greet(server, "2024-11-05")
    assert "resultType" in ask(server, "tools/list", _meta=ENVELOPE)["result"]
    assert "title" not in ask(server, "tools/list")["result"]["tools"][0]


def test_a_modern_request_takes_no_client_from_an_earlier_one(server):
    greet(server, "2025-11-25")
    assert call(server, 1, _meta=ENVELOPE).client == "modern"
    bare = {key: value for key, value in ENVELOPE.items() if not key.endswith("clientInfo")}
    assert call(server, 2, _meta=bare).client is None
    assert call(server, 3).client == "old"


def test_a_subscription_is_acknowledged_and_stays_open_until_the_end(server):
    listen = line(
        "subscriptions/listen", "s", _meta=ENVELOPE, notifications={"toolsListChanged": 1}
    )
    (acknowledged,) = said(server.feed(listen))
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {
        "notifications": {},
        "_meta": {"io.modelcontextprotocol/subscriptionId": "s"},
    }
    (end,) = server.close()
    reply = msgspec.json.decode(end.data)
    assert reply["id"] == "s"
    assert reply["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "s"
    assert server.close() == []


def test_a_cancelled_subscription_is_over(server):
    server.feed(line("subscriptions/listen", 4, _meta=ENVELOPE, notifications={}))
    server.feed(line("notifications/cancelled", requestId=4))
    assert server.close() == []


def test_subscriptions_are_bounded_and_checked(server):
    bad = ask(server, "subscriptions/listen", _meta=ENVELOPE)
    assert bad["error"]["code"] == -32602
    for identifier in range(MAX_LISTENERS):
        ask(server, "subscriptions/listen", identifier, _meta=ENVELOPE, notifications={})
    more = ask(server, "subscriptions/listen", "more", _meta=ENVELOPE, notifications={})
    assert more["error"]["code"] == -32603


# batches


def test_batches_are_of_one_revision_alone(server):
    batch = json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]).encode() + b"\n"
    for revision in ("2024-11-05", "2025-06-18", "2025-11-25"):
        greet(server, revision)
        (refused,) = said(server.feed(batch))
        assert refused["error"]["code"] == -32600
        assert refused["id"] is None
    greet(server, "2025-03-26")
    assert said(server.feed(batch)) == [[{"jsonrpc": "2.0", "id": 1, "result": {}}]]


def batch(*messages: dict[str, Any]) -> bytes:
    return json.dumps([{"jsonrpc": "2.0"} | each for each in messages]).encode() + b"\n"


def echo(identifier: Any) -> dict[str, Any]:
    return {"id": identifier, "method": "tools/call", "params": {"name": "echo"}}


def test_a_batch_is_answered_in_one_line_when_all_of_it_is_done(server):
    greet(server, "2025-03-26")
    events = server.feed(batch({"id": 1, "method": "ping"}, echo(2), {"method": "x"}, echo(3)))
    second, third = (event.call for event in events)
    assert server.answer(third, b'{"n":3}') is None
    whole = server.answer(second, b'{"n":2}')
    assert [reply["id"] for reply in msgspec.json.decode(whole.data)] == [1, 3, 2]
    assert set(whole.calls) == {second, third}


def test_a_cancelled_call_is_left_out_of_its_batch(server):
    greet(server, "2025-03-26")
    second, third = (event.call for event in server.feed(batch(echo(2), echo(3))))
    assert server.answer(second, b"{}") is None
    rest = server.abandon(third)
    assert [reply["id"] for reply in msgspec.json.decode(rest.data)] == [2]
    assert rest.calls == (second,)


def test_a_line_taken_back_is_replaced_by_one_without_the_cancelled_call(server):
    greet(server, "2025-03-26")
    second, third = (event.call for event in server.feed(batch(echo(2), echo(3))))
    server.answer(second, b"{}")
    assert server.answer(third, b"{}").calls == (second, third)
    assert server.abandon(second).calls == (third,)
    server.settle([third])
    assert server.abandon(second) is None


def test_a_batch_of_which_nothing_is_left_is_not_answered(server):
    greet(server, "2025-03-26")
    (event,) = server.feed(batch(echo(1)))
    assert server.abandon(event.call) is None
    assert server.feed(batch({"method": "notifications/initialized"})) == []


def test_what_does_not_belong_into_a_batch_is_refused_in_it(server):
    greet(server, "2025-03-26")
    members = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}},
        {"id": 2, "method": "tools/list", "params": {"_meta": ENVELOPE}},
    ]
    (replies,) = said(server.feed(batch(*members)))
    assert [reply["error"]["code"] for reply in replies] == [-32600, -32600]
    (empty,) = said(server.feed(b"[]\n"))
    assert empty["error"]["code"] == -32600
    (odd,) = said(server.feed(b"[1]\n"))
    assert odd[0]["error"]["code"] == -32600


# what cannot be read


@pytest.mark.parametrize(
    ("bad", "code", "identifier"),
    [
        (b"nonsense", -32700, None),
        (b'{"id":5', -32700, 5),
        (b"\xff\xfe", -32700, None),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":{"a":NaN}}', -32700, 3),
        (b'{"jsonrpc":"2.0","id":"u","method":"ping","params":{"a":"\\ud800"}}', -32700, "u"),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"a":"\xff"}}', -32700, 4),
        (b'{"jsonrpc":"2.0","id":8,"params":' + b"[" * 9000 + b"]" * 9000 + b"}", -32700, 8),
        (b"5", -32600, None),
        (b'{"id":1}', -32600, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602, 1),
    ],
)
def test_a_bad_line_is_answered_and_the_connection_goes_on(server, bad, code, identifier):
    (reply,) = said(server.feed(bad + b"\n"))
    assert (reply["error"]["code"], reply["id"]) == (code, identifier)
    assert ask(server, "ping", 77)["result"] == {}


def test_a_response_to_nothing_is_nothing(server):
    assert server.feed(b'{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":1}\n') != []
    assert server.feed(b'{"jsonrpc":"2.0","id":1,"result":{}}\n') == []


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("bad", [b"\\ud800", b"\\udfff\\ud800", b"\xff"])
def test_a_call_with_what_is_no_text_gets_a_result_that_says_so(server, revision, bad):
    greet(server, revision)
    request = b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo",'
    (reply,) = said(server.feed(request + b'"arguments":{"content":"' + bad + b'"}}}\n'))
    assert reply["id"] == "x"
    assert reply["result"]["isError"] is True
    error = json.loads(reply["result"]["content"][0]["text"])["error"]
    assert (error["code"], error["retryable"]) == ("invalid_argument", False)


def test_a_modern_call_with_what_is_no_text_gets_a_modern_result(server):
    document = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"_meta": ENVELOPE, "name": "echo", "arguments": {"content": "\ud800"}},
        }
    )
    (reply,) = said(server.feed(document.encode() + b"\n"))
    assert reply["result"]["resultType"] == "complete"


@pytest.mark.parametrize(
    ("first", "last", "identifier"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"content":"', b'"}}', 7),
        (b'{ "id" : "s", "params":{"content":"', b'"}}', "s"),
        (b'{"method":"tools/call","params":{"id":5,"content":"', b'"},"jsonrpc":"2.0","id":8}', 8),
        (b'{"method":"tools/call","params":{"c":"', b'"},"id":"z","jsonrpc":"2.0"}', "z"),
        (b'{"method":"tools/call","params":{"c":"', b'\\"id\\":5}"}', None),
        (b'{"method":"tools/call","params":{"c":"', b'","id":5}}', None),
        (b"x", b"y", None),
    ],
)
def test_whom_to_answer_is_found_at_either_end_of_a_line_that_is_too_long(
    server, first, last, identifier
):
    padding = b"x" * (9 * 1024 * 1024)
    (reply,) = said(server.feed(first + padding + last + b"\n"))
    assert (reply["error"]["code"], reply["id"]) == (-32600, identifier)
    assert ask(server, "ping")["result"] == {}


@given(st.binary(max_size=200))
def test_no_bytes_break_the_connection(data):
    server = McpServer(ServerInfo("agentbus", "agentbus", "1.0", ""), [tool()])
    for event in server.feed(data + b"\n"):
        if isinstance(event, Say):
            assert "error" in msgspec.json.decode(event.line.data)
    assert ask(server, "ping", "after")["result"] == {}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)


@given(
    st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "result", "x"]),
        json_values | st.sampled_from(["2.0", "tools/call", "initialize", "tools/list", "echo"]),
    )
)
def test_no_object_breaks_the_connection(document):
    server = McpServer(ServerInfo("agentbus", "agentbus", "1.0", ""), [tool()])
    server.feed(json.dumps(document).encode("utf-8", "surrogatepass") + b"\n")
    assert ask(server, "ping", "after it all")["result"] == {}
