from __future__ import annotations

import inspect

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.wire import links
from agentbus.wire.framing import FrameDecoder, encode
from tests.support.struct_values import members, of_struct

UNIONS = {
    name: getattr(links, name)
    for name in (
        "ToChild",
        "FromChild",
        "GatewayToWriter",
        "WriterToGateway",
        "WriterToProjector",
        "ProjectorToWriter",
        "ProjectorToGateway",
        "GatewayToProjector",
        "GatewayToIndexer",
        "IndexerToGateway",
        "Outcome",
    )
}
DIRECTIONS = {name: union for name, union in UNIONS.items() if name != "Outcome"}
FRAMES = {
    kind
    for _, kind in inspect.getmembers(links, inspect.isclass)
    if issubclass(kind, links.Frame) and kind is not links.Frame
}


@pytest.mark.parametrize("name", DIRECTIONS)
def test_every_message_of_a_direction_arrives_as_it_was_sent(name):
    union = DIRECTIONS[name]

    @given(st.lists(st.one_of([of_struct(kind) for kind in members(union)]), max_size=5))
    def check(messages):
        stream = b"".join(bytes(encode(message)) for message in messages)
        assert FrameDecoder(union).feed(stream) == messages

    check()


@pytest.mark.parametrize("name", UNIONS)
def test_the_tags_of_a_union_are_small_numbers_and_unique(name):
    tags = [kind.__struct_config__.tag for kind in members(UNIONS[name])]
    assert sorted(tags) == list(range(1, len(tags) + 1))


def test_every_frame_is_in_exactly_one_union():
    places = [kind for union in UNIONS.values() for kind in members(union)]
    assert sorted(kind.__name__ for kind in places) == sorted(kind.__name__ for kind in FRAMES)


@pytest.mark.parametrize("kind", sorted(FRAMES, key=lambda kind: kind.__name__))
def test_every_frame_is_a_frozen_array_that_says_what_it_is_for(kind):
    configuration = kind.__struct_config__
    assert configuration.frozen
    assert configuration.array_like
    assert kind.__doc__


@pytest.mark.parametrize("name", DIRECTIONS)
def test_a_message_of_no_known_tag_is_refused(name):
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode([99]), type=UNIONS[name])


def test_the_names_of_the_links_are_those_of_their_ends():
    assert {links.GATEWAY_WRITER, links.WRITER_PROJECTOR, links.PROJECTOR_GATEWAY} == {
        "gateway-writer",
        "writer-projector",
        "projector-gateway",
    }
