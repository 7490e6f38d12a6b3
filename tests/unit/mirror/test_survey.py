"""What a stream holds, told without reading it."""

from __future__ import annotations

import pytest

from agentbus.errors import Unavailable
from agentbus.mirror import survey
from agentbus.mirror.resp import Refused
from agentbus.mirror.survey import Survey
from agentbus.model.ids import ChannelId, Seq
from tests.support.model_redis import ModelRedis

CHANNEL = ChannelId(1)
SENT = b'{"sent_at":"2026-11-30T16:40:27.123Z"}'


def surveyed(redis: ModelRedis) -> Survey:
    return survey.read(redis.connect().run_all(survey.commands(CHANNEL)))


def test_it_tells_how_many_messages_there_are_and_when_the_newest_was_sent() -> None:
    redis = ModelRedis()
    for number in (4, 5, 6):
        redis.run((b"XADD", b"s:1", b"%d-0" % number, b"e", SENT, b"s", b"1"))
    assert surveyed(redis) == Survey(3, Seq(4), Seq(6), 0, "2026-11-30T16:40:27.123Z")


def test_of_memories_it_counts_the_contents() -> None:
    redis = ModelRedis()
    for number in (4, 6):
        redis.run((b"XADD", b"s:1", b"%d-0" % number, b"m", b"%d" % number, b"s", b"1"))
        redis.run((b"HSET", b"m:1", b"%d" % number, SENT))
    assert surveyed(redis) == Survey(2, Seq(4), Seq(6), 2, "")


def test_of_nothing_it_is_all_zero() -> None:
    assert surveyed(ModelRedis()) == Survey(0, Seq(0), Seq(0), 0, "")


def test_a_refused_one_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        survey.read([Refused("LOADING"), 0, [], []])
