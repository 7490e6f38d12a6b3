"""Reading back: the right end of the range, whole messages, and `more` exact."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.gateway import connections
from agentbus.gateway.events import StreamRead
from agentbus.gateway.history import select
from agentbus.mirror.read import Entry, Reading
from agentbus.model.ids import ChannelId, Seq, SessionId
from agentbus.wire.rpc import HistoryParams
from tests.support.gateway_rig import Rig, entries, top


def ask(rig: Rig, connection: int, attachment: str, **params: Any) -> int:
    given_params = {"attachment": attachment, "channel": "general", **params}
    return rig.ask(connection, "history", **given_params)


def seqs(result: dict[str, Any]) -> list[int]:
    return [message["seq"] for message in result["messages"]]


def test_without_bounds_the_newest_come_in_stream_order() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = ask(rig, connection, attachment, limit=3)
    asked = rig.read(entries(6, 9), more=True)
    assert (asked.edge, asked.forward, asked.count) == (None, False, 4)
    result = rig.result(connection, request)
    assert (seqs(result), result["more"]) == ([7, 8, 9], True)


def test_after_a_position_the_oldest_come_first() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = ask(rig, connection, attachment, after=2, limit=3)
    asked = rig.read(entries(3, 6), more=True)
    assert (asked.edge, asked.forward) == (2, True)
    result = rig.result(connection, request)
    assert (seqs(result), result["more"]) == ([3, 4, 5], True)


def test_between_two_positions_the_newest_come() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = ask(rig, connection, attachment, after=4, before=8)
    asked = rig.read(entries(1, 7))
    assert (asked.edge, asked.forward) == (8, False)
    result = rig.result(connection, request)
    assert (seqs(result), result["more"]) == ([5, 6, 7], False)


def test_an_empty_range_is_empty() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = ask(rig, connection, attachment, before=1)
    rig.read([])
    assert rig.result(connection, request) == {"messages": [], "more": False}


def test_messages_come_as_the_bytes_they_are() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    ask(rig, connection, attachment)
    body = b'{"seq":  1, "content":"\xc3\xa9\\u2028"}'
    rig.read([Entry(Seq(1), SessionId(9), body)])
    assert b'"messages":[' + body + b"]" in rig.raw[connection][-1]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"limit": 0}, "1000"),
        ({"limit": 1001}, "1000"),
        ({"max_bytes": 0}, "4194304"),
        ({"max_bytes": 4194305}, "4194304"),
        ({"before": -1}, "before"),
        ({"after": 2**60}, "after"),
        ({"channel": ""}, "channel"),
    ],
)
def test_ranges_out_of_bounds_name_what_is_allowed(params: dict[str, Any], said: str) -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    error = rig.result(connection, ask(rig, connection, attachment, **params))
    assert error["code"] == "invalid_argument"
    assert said in error["message"]


def test_a_channel_that_does_not_exist_is_not_found() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    error = rig.result(connection, ask(rig, connection, attachment, channel="nope"))
    assert error["code"] == "not_found"


def test_during_recovery_it_says_so_also_where_it_begins_meanwhile() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    early = ask(rig, connection, attachment)
    failing = ask(rig, connection, attachment)
    rig.project(ready=False)
    rig.read(entries(1, 2))
    assert rig.result(connection, early)["code"] == "recovering"
    rig.project(top(1, 2))
    rig.fail_read()
    assert rig.result(connection, failing)["code"] == "recovering"
    rig.project(ready=False)
    assert rig.result(connection, ask(rig, connection, attachment))["code"] == "recovering"


def test_what_was_read_before_a_rebuild_is_not_shown() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = ask(rig, connection, attachment)
    rig.project(ready=True, rebuilds=1)
    rig.read(entries(1, 2))
    assert rig.result(connection, request)["code"] == "recovering"


def test_a_connection_has_a_bounded_number_of_reads_under_way() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    for _ in range(connections.READS):
        ask(rig, connection, attachment)
    error = rig.result(connection, ask(rig, connection, attachment))
    assert (error["code"], error["retry_after_ms"]) == ("rate_limited", connections.READ_RETRY_MS)
    rig.read([])
    assert rig.reply(connection, ask(rig, connection, attachment)) is None


@given(
    sizes=st.lists(st.integers(1, 40), max_size=30),
    holes=st.sets(st.integers(1, 30)),
    before=st.none() | st.integers(0, 32),
    after=st.none() | st.integers(0, 32),
    limit=st.integers(1, 12),
    max_bytes=st.integers(1, 200),
)
def test_any_range_is_cut_exactly(
    sizes: list[int],
    holes: set[int],
    before: int | None,
    after: int | None,
    limit: int,
    max_bytes: int,
) -> None:
    stream = [
        Entry(Seq(seq), SessionId(1), b"x" * size)
        for seq, size in enumerate(sizes, 1)
        if seq not in holes
    ]
    params = HistoryParams(
        attachment="1.1",
        channel="c",
        before=before,
        after=after,
        limit=limit,
        max_bytes=max_bytes,
    )
    result = select(params, read(stream, params))
    inside = [each for each in stream if (after or 0) < each.seq < (before or 10**9)]
    if before is not None and before == 0:
        inside = []
    forward = before is None and after is not None
    ordered = inside if forward else inside[::-1]
    wanted: list[Entry] = []
    for each in ordered[:limit]:
        if wanted and sum(len(w.envelope) for w in [*wanted, each]) > max_bytes:
            break
        wanted.append(each)
    shown = wanted if forward else wanted[::-1]
    assert [bytes(message) for message in result.messages] == [each.envelope for each in shown]
    assert result.more == (len(wanted) < len(inside))


def read(stream: list[Entry], params: HistoryParams) -> StreamRead:
    """As the shell does it, with the slack scaled to the sizes here."""
    forward = params.before is None and params.after is not None
    edge = params.after if forward else params.before
    reading = Reading(
        ChannelId(1),
        None if edge is None else Seq(edge),
        forward=forward,
        count=params.limit + 1,
        max_bytes=params.max_bytes + 40,
    )
    while not reading.done:
        name, _, start, _, _, count = reading.command()
        bound = int(start[1:-2]) if start not in (b"+", b"-") else 10**9
        if name == b"XRANGE":
            found = [each for each in stream if each.seq > bound]
        else:
            found = [each for each in stream if each.seq < bound][::-1]
        reply = [
            (b"%d-0" % each.seq, [b"e", each.envelope, b"s", b"1"]) for each in found[: int(count)]
        ]
        reading.take(reply)
    page = reading.page()
    return StreamRead(1, page.entries, page.more)
