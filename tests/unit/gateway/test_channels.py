"""What is known of channels, whichever link tells it first."""

from __future__ import annotations

import pytest

from agentbus.errors import NotFound
from agentbus.gateway.channels import Channels
from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, Seq, SessionId
from agentbus.wire.links import VisibleMessage
from tests.support.gateway_rig import AT, envelope, top

ONE = ChannelId(1)


def visible(*seqs: int) -> list[VisibleMessage]:
    return [VisibleMessage(ONE, Seq(seq), SessionId(9), envelope(seq)) for seq in seqs]


def test_a_channel_may_be_visible_before_it_has_a_name() -> None:
    channels = Channels()
    channels.by_id(ONE).grow(visible(1, 2))
    assert channels.all() == []
    with pytest.raises(NotFound, match="nope"):
        channels.named("nope")
    channels.opened(ChannelInfo(ONE, "a", "memory", Seq(0)))
    channel = channels.named("a")
    assert channel is channels.by_id(ONE)
    assert (channel.stream.top, channel.stream.dense, channel.messages) == (2, False, 2)
    assert channels.knows("a")


def test_hearing_of_a_channel_again_changes_nothing() -> None:
    channels = Channels()
    for _ in range(2):
        channels.opened(ChannelInfo(ONE, "a", "ordinary", Seq(0)))
    assert [channel.name for channel in channels.all()] == ["a"]


def test_what_is_visible_twice_counts_once() -> None:
    channel = Channels().by_id(ONE)
    channel.grow(visible(1, 2))
    channel.grow(visible(2))
    assert (channel.messages, channel.stream.top, channel.stream.oldest) == (2, 2, 1)
    assert channel.newest_at == AT


def test_a_survey_replaces_counts_and_never_lowers_the_top() -> None:
    channel = Channels().by_id(ONE)
    channel.grow(visible(1, 2, 3))
    channel.survey(top(1, 2, oldest=2))
    assert (channel.messages, channel.stream.top, channel.stream.oldest) == (1, 3, 2)


def test_a_stream_that_is_empty_has_no_newest() -> None:
    assert Channels().by_id(ONE).newest_at is None


def test_pages_end_where_the_names_end() -> None:
    channels = Channels()
    for number, name in enumerate("cab", 1):
        channels.opened(ChannelInfo(ChannelId(number), name, "ordinary", Seq(0)))
    first, cursor = channels.page(None, 2)
    assert ([channel.name for channel in first], cursor) == (["a", "b"], "b")
    last, cursor = channels.page("b", 2)
    assert ([channel.name for channel in last], cursor) == (["c"], None)
    assert channels.page("zzz", 2) == ([], None)
