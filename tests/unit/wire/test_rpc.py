from __future__ import annotations

import inspect
import typing

import msgspec
import pytest
from hypothesis import given

from agentbus.errors import NotFound
from agentbus.model.message import Message
from agentbus.wire import rpc
from agentbus.wire.error_codes import to_rpc
from agentbus.wire.rpc import METHODS, NOTIFICATIONS, Params, Reply, Request
from tests.support.struct_values import of_struct

SHAPES = {
    kind.__name__: kind
    for kind in [*(kind for pair in METHODS.values() for kind in pair), *NOTIFICATIONS.values()]
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_survives_json(name):
    kind = SHAPES[name]

    @given(of_struct(kind))
    def check(value):
        once = msgspec.json.encode(value)
        assert b"\n" not in once
        assert msgspec.json.encode(msgspec.json.decode(once, type=kind)) == once

    check()


def test_every_shape_that_the_module_declares_is_reachable_from_a_method_or_notification():
    declared = {
        kind
        for _, kind in inspect.getmembers(rpc, inspect.isclass)
        if issubclass(kind, Params) and kind is not Params
    }
    reached: set[type] = set()

    def walk(hint: object) -> None:
        for argument in typing.get_args(hint):
            walk(argument)
        if isinstance(hint, type) and issubclass(hint, Params) and hint not in reached:
            reached.add(hint)
            walk(hint.__base__)
            for inner in typing.get_type_hints(hint).values():
                walk(inner)

    for shape in SHAPES.values():
        walk(shape)
    assert reached == {Params} | declared


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_frozen_and_documented(name):
    assert SHAPES[name].__struct_config__.frozen
    assert SHAPES[name].__doc__ != Params.__doc__


@pytest.mark.parametrize("name", SHAPES)
def test_members_a_reader_does_not_know_are_ignored(name):
    assert not SHAPES[name].__struct_config__.forbid_unknown_fields


def test_a_request_keeps_its_params_unread():
    line = b'{"jsonrpc":"2.0","id":7,"method":"send","params":{"channel": "general"}}'
    request = msgspec.json.decode(line, type=Request)
    assert (request.method, request.id) == ("send", 7)
    assert bytes(request.params) == b'{"channel": "general"}'


def test_params_may_be_left_out():
    request = msgspec.json.decode(b'{"method": "status", "id": "a"}', type=Request)
    assert msgspec.json.decode(request.params, type=rpc.Empty) == rpc.Empty()


def test_an_answer_and_a_notification_are_told_apart_by_their_members():
    answer = msgspec.json.decode(b'{"jsonrpc":"2.0","id":1,"result":{}}', type=Reply)
    note = msgspec.json.decode(b'{"jsonrpc":"2.0","method":"epoch","params":{}}', type=Reply)
    assert (answer.id, answer.method, bytes(answer.result)) == (1, None, b"{}")
    assert (note.id, note.method, bytes(note.params)) == (None, "epoch", b"{}")


def test_an_error_answer_carries_the_applications_code():
    line = msgspec.json.encode({"id": 1, "error": to_rpc(NotFound("no channel x"))})
    error = msgspec.json.decode(line, type=Reply).error
    assert error is not None
    assert error.code == -32000
    assert error.data["code"] == "not_found"


def test_envelopes_pass_through_deliver_byte_for_byte():
    envelope = b'{"content":"\\u2028 \xf0\x9f\x98\x80",  "seq":1}'
    note = rpc.DeliverNote(
        attachment="1.1",
        epoch="1.0",
        subscription=1,
        channel="general",
        through=1,
        messages=[msgspec.Raw(envelope)],
    )
    assert envelope in msgspec.json.encode(note)


def test_send_params_and_envelopes_name_what_the_sender_chooses_alike():
    chosen = {"content", "type", "reply_to", "metadata", "references"}
    assert chosen <= set(rpc.SendParams.__struct_fields__)
    assert chosen <= set(Message.__struct_fields__)
