"""What was once worth keeping is replayed, and hypothesis makes more of its kind."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.wire.framing import encode
from agentbus.wire.mcp.requests import META_CAPABILITIES, META_CLIENT, META_REVISION
from agentbus.wire.mcp.revisions import SUPPORTED
from agentbus.wire.rpc import METHODS, NOTIFICATIONS
from tests.fuzz.__main__ import NAMES
from tests.fuzz.targets import TARGETS, UNIONS
from tests.support.search_reference import texts
from tests.support.struct_values import members, of_struct

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(CORPUS.glob("*/*"))
LARGEST = 16 * 1024

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
)
json = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
ids = st.integers(-3, 3) | st.text(max_size=3) | scalars
cuts = st.integers(0, 255).map(lambda size: bytes([size]))


def test_every_target_has_a_corpus_and_every_corpus_a_target() -> None:
    assert {file.parent.name for file in FILES} == set(TARGETS) == set(NAMES)


def test_the_corpus_is_small() -> None:
    assert max(file.stat().st_size for file in FILES) <= LARGEST
    assert sum(file.stat().st_size for file in FILES) <= 100 * LARGEST


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_was_kept_breaks_nothing(file: Path) -> None:
    TARGETS[file.parent.name](file.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_bytes_of_any_kind_break_nothing(name: str) -> None:
    @given(st.binary(max_size=200))
    def check(data: bytes) -> None:
        TARGETS[name](data)

    check()


def _messages(union: object) -> st.SearchStrategy[list[msgspec.Struct]]:
    return st.lists(st.one_of([of_struct(kind) for kind in members(union)]), max_size=4)


@pytest.mark.parametrize("number", range(len(UNIONS)))
def test_frames_with_a_few_bytes_changed_break_nothing(number: int) -> None:
    @given(_messages(UNIONS[number]), cuts, st.lists(st.tuples(st.integers(0), st.binary())))
    def check(messages: list[msgspec.Struct], cut: bytes, changes: list[tuple[int, bytes]]) -> None:
        stream = bytearray(b"".join(bytes(encode(message)) for message in messages))
        for place, changed in changes:
            at = place % (len(stream) + 1)
            stream[at : at + len(changed)] = changed
        TARGETS["frames"](bytes([number]) + cut + bytes(stream))

    check()


def _request(method: str, params: object, identity: object) -> bytes:
    return msgspec.json.encode(
        {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
    )


def _params_of(method: str) -> st.SearchStrategy[object]:
    """As the method wants them, some with a member exchanged for anything."""
    proper = of_struct(METHODS[method][0]).map(msgspec.to_builtins)
    named = proper.map(
        lambda params: params | {"attachment": "@"} if "attachment" in params else params
    )
    return st.tuples(named, st.text(max_size=4), json).map(
        lambda parts: {
            **parts[0],
            **({key: parts[2]} if (key := _near(parts[0], parts[1])) else {}),
        }
    )


def _near(params: dict[str, object], text: str) -> str | None:
    """One of its members, sometimes."""
    keys = [*params, None, None, None]
    return keys[sum(map(ord, text)) % len(keys)]


@pytest.mark.parametrize("method", METHODS)
def test_requests_that_are_nearly_sound_break_nothing(method: str) -> None:
    @given(st.lists(st.tuples(_params_of(method), ids), max_size=4), cuts)
    def check(calls: list[tuple[object, object]], cut: bytes) -> None:
        said = [_request(method, params, identity) for params, identity in calls]
        TARGETS["rpc"](cut + b"\n".join(said) + b"\n")

    check()


@given(
    st.lists(
        st.sampled_from(sorted(NOTIFICATIONS)).flatmap(
            lambda method: of_struct(NOTIFICATIONS[method]).map(
                lambda params: msgspec.json.encode({"method": method, "params": params})
            )
        )
        | st.sampled_from(sorted(METHODS)).flatmap(
            lambda method: of_struct(METHODS[method][1]).flatmap(
                lambda result: st.integers(1, 12).map(
                    lambda number: msgspec.json.encode({"id": number, "result": result})
                )
            )
        ),
        max_size=6,
    ),
    cuts,
)
def test_a_daemon_that_says_anything_at_any_time_breaks_nothing(
    said: list[bytes], cut: bytes
) -> None:
    TARGETS["replies"](cut + b"\n".join(said) + b"\n")
    TARGETS["daemon"](cut + b"\n".join(said) + b"\n")


meta = st.fixed_dictionaries(
    {},
    optional={
        META_REVISION: st.sampled_from(SUPPORTED) | json,
        META_CAPABILITIES: st.just({}) | json,
        META_CLIENT: st.fixed_dictionaries({"name": st.sampled_from(["claude-code", "x"]) | json}),
        "threadId": json,
        "sessionId": json,
        "x-codex-turn-metadata": json,
        "claudecode/toolUseId": json,
    },
)
arguments = st.dictionaries(
    st.sampled_from(
        [
            "channel",
            "content",
            "wait_seconds",
            "max_messages",
            "max_kib",
            "message_id",
            "metadata",
            "references",
            "query",
            "limit",
            "cursor",
            "before",
            "after",
            "memory_id",
            "name",
            "kind",
            "session_id",
            "tool_use_id",
            "agent_id",
        ]
    ),
    json,
    max_size=5,
)
harness = st.one_of(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(
                [
                    "whoami",
                    "send",
                    "recv",
                    "search",
                    "history",
                    "read",
                    "memory_edit",
                    "discover",
                    "bind_caller",
                    "x",
                ]
            ),
            "arguments": arguments | json,
        },
        optional={"_meta": meta | json},
    ).map(lambda params: ("tools/call", params)),
    st.tuples(
        st.sampled_from(
            [
                "initialize",
                "ping",
                "tools/list",
                "server/discover",
                "resources/read",
                "resources/subscribe",
                "subscriptions/listen",
                "notifications/cancelled",
                "nothing",
            ]
        ),
        st.fixed_dictionaries(
            {},
            optional={
                "protocolVersion": st.sampled_from(SUPPORTED) | json,
                "clientInfo": st.just({"name": "codex-mcp-client"}) | json,
                "uri": st.just("agentbus://inbox") | json,
                "notifications": st.just({"resourceSubscriptions": ["agentbus://inbox"]}) | json,
                "requestId": ids,
                "_meta": meta | json,
            },
        )
        | json,
    ),
)


def _batches(said: list[bytes], together: int) -> bytes:
    """Some of the lines as one batch."""
    at = together % (len(said) + 1)
    batch = [b"[" + b",".join(said[:at]) + b"]"] if at else []
    return b"\n".join([*batch, *said[at:]]) + b"\n"


@given(st.lists(st.tuples(harness, ids), max_size=6), st.integers(0, 3), cuts)
def test_a_harness_that_says_nearly_mcp_breaks_nothing(
    said: list[tuple[tuple[str, object], object]], together: int, cut: bytes
) -> None:
    lines = [_request(method, params, identity) for (method, params), identity in said]
    TARGETS["mcp"](cut + _batches(lines, together))


@given(texts, texts)
def test_a_query_finds_what_it_means(typed: str, text: str) -> None:
    TARGETS["query"](f"{typed}\n{text}".encode(errors="replace"))
