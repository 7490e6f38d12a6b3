"""The model that unit tests and simulations use answers as the real server does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbus.mirror import survey, write
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.mirror.write import Mark
from agentbus.model.ids import ChannelId
from tests.support.model_redis import ModelRedis

KEYS = st.sampled_from([b"s:1", b"s:2"])
SEQS = st.integers(1, 12)
BOUND = st.builds(lambda seq, edge: edge + b"%d-0" % seq, SEQS, st.sampled_from([b"", b"("]))
COUNT = st.integers(1, 9).map(lambda count: b"%d" % count)
FIELDS = st.sampled_from([b"a", b"b", b"c"])
MARK = Mark(b"bus-1", b"1.1", b"4")


def xadd(key: bytes, seq: int, text: bytes) -> Command:
    return (b"XADD", key, b"%d-0" % seq, b"e", text, b"s", b"7")


single = st.one_of(
    st.builds(xadd, KEYS, SEQS, st.binary(max_size=5)),
    st.builds(lambda key, a, b, n: (b"XRANGE", key, a, b, b"COUNT", n), KEYS, BOUND, BOUND, COUNT),
    st.builds(lambda key, a, n: (b"XRANGE", key, a, b"+", b"COUNT", n), KEYS, BOUND, COUNT),
    st.builds(lambda key, a, n: (b"XREVRANGE", key, a, b"-", b"COUNT", n), KEYS, BOUND, COUNT),
    st.builds(lambda key, n: (b"XREVRANGE", key, b"+", b"-", b"COUNT", n), KEYS, COUNT),
    st.builds(lambda key: (b"XLEN", key), KEYS),
    st.builds(lambda key, a: (b"XRANGE", key, a, a), KEYS, SEQS.map(lambda seq: b"%d-0" % seq)),
    st.builds(lambda key, seq: (b"XDEL", key, b"%d-0" % seq), KEYS, SEQS),
    st.builds(lambda key, seq: (b"XTRIM", key, b"MINID", b"=", b"%d-0" % seq), KEYS, SEQS),
    st.builds(lambda field, text: (b"HSET", b"m:1", field, text), FIELDS, COUNT),
    st.builds(lambda field: (b"HDEL", b"m:1", field), FIELDS),
    st.builds(lambda field: (b"HGET", b"m:1", field), FIELDS),
    st.builds(lambda a, b: (b"HMGET", b"m:1", a, b), FIELDS, FIELDS),
    st.just((b"HLEN", b"m:1")),
    st.builds(lambda key: (b"DEL", key), st.sampled_from([b"m:1", b"s:1", b"nothing"])),
    st.just(write.RECALL),
    st.builds(lambda n: (b"HSET", b"ab:meta", b"commit_id", n), COUNT),
    st.just((b"FLUSHALL", b"SYNC")),
)
transaction = st.lists(single, max_size=6).map(
    lambda commands: [(b"MULTI",), *commands, (b"EXEC",)]
)


def comparable(reply: Reply) -> Reply:
    """Refusals are compared by their code; their texts differ between servers."""
    if isinstance(reply, list):
        return [comparable(part) for part in reply]
    return reply.text.split()[0] if isinstance(reply, Refused) else reply


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(single.map(lambda command: [command]), transaction), max_size=25))
def test_the_model_answers_as_the_server(valkey: Any, script: list[list[Command]]) -> None:
    valkey.run((b"FLUSHALL",))
    session = ModelRedis().connect()
    for commands in script:
        assert comparable(session.run_all(commands)) == comparable(valkey.run(*commands))


@pytest.mark.parametrize("command", [(b"NONSENSE",), (b"EXEC",)])
def test_the_model_refuses_as_the_server(valkey: Any, command: Command) -> None:
    (refused,) = valkey.run(command)
    assert comparable(ModelRedis().connect().run(command)) == comparable(refused)


def test_the_server_takes_the_mirrors_own_commands(valkey: Any) -> None:
    assert write.refusal(valkey.run(*write.clear(MARK)), None) is None
    assert write.recalled(valkey.run(write.RECALL)[0]) == MARK
    valkey.run(xadd(b"s:1", 3, b'{"sent_at":"2026-11-30T16:40:27.123Z"}'))
    found = survey.read(valkey.run(*survey.commands(ChannelId(1))))
    assert (found.count, found.oldest, found.newest) == (1, 3, 3)
