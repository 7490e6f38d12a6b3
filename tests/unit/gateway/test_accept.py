"""Sizes are measured where they could matter, never too strictly."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.errors import InvalidArgument
from agentbus.gateway import accept
from agentbus.gateway.connections import Attachment, Connection
from agentbus.model.ids import AttachmentId
from agentbus.model.message import WIDEST_SEQ, Message, encode_envelope, envelope_size
from agentbus.model.window import Window
from agentbus.wire.links import Register
from agentbus.wire.rpc import SendParams

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def attachment() -> Attachment:
    names = Register(1, AttachmentId("1.1"), None, "codex", "n" * 36, repository="tmi")
    made = Attachment(Connection(1, Window(1, 1)), names)
    made.display_name = made.agent = "Sam"
    return made


def params(content: str, **rest: object) -> SendParams:
    return SendParams(
        attachment="1.1", channel="general", message_id="m" * 36, content=content, **rest
    )


def stored(given: SendParams) -> int:
    """What the writer will measure, at least."""
    message = Message(
        given.message_id, 1, given.channel, "Sam", "Sam", "codex", "n" * 36,
        "2026-11-30T16:40:27.123Z", given.type, given.content, given.message_id, None, "tmi",
        given.reply_to, given.metadata, given.references,
    )  # fmt: skip
    return envelope_size(encode_envelope(message), 1)


def fits(given: SendParams, limit_kib: int) -> bool:
    return accept.size(given, attachment(), limit_kib) is None


def test_the_limit_is_exact_to_the_byte_for_a_message_that_starts_a_thread() -> None:
    spare = 64 * 1024 - stored(params(""))
    assert fits(params("x" * spare), 64)
    assert not fits(params("x" * (spare + 1)), 64)


@given(
    content=st.text(max_size=400),
    metadata=st.none()
    | st.dictionaries(
        st.text(max_size=5),
        st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
        max_size=20,
    ),
)
def test_what_the_writer_would_take_is_never_refused(
    content: str, metadata: dict[str, float | str] | None
) -> None:
    given = params(content * 3, metadata=metadata)
    assert fits(given, 1) or stored(given) > 1024


@given(st.dictionaries(st.text(max_size=3), NUMBERS, min_size=1, max_size=300))
def test_unmeasured_messages_are_within_the_limit(metadata: dict[str, float]) -> None:
    text = (
        b"{"
        + b",".join(
            b"%b:%b" % (msgspec.json.encode(key), repr(value).removesuffix(".0").encode())
            for key, value in metadata.items()
        )
        + b"}"
    )
    assert len(msgspec.json.encode(msgspec.json.decode(text))) <= accept._GROWTH * len(text)


@pytest.mark.parametrize("good", ["a", "général/☃", "x" * 128, "a b", "👍" * 32, "é" * 64])
def test_names_have_up_to_128_bytes(good: str) -> None:
    accept.name("it", good)


@pytest.mark.parametrize(
    "bad", ["", "x" * 129, "é" * 65, "a\x00", "a\x7f", "a\x9b", "a\u2028", "a\u2029b", "\n"]
)
def test_other_names_are_refused(bad: str) -> None:
    with pytest.raises(InvalidArgument):
        accept.name("it", bad)


def test_positions_are_exact_in_every_reader() -> None:
    accept.position("p", None)
    accept.position("p", WIDEST_SEQ)
    with pytest.raises(InvalidArgument):
        accept.position("p", WIDEST_SEQ + 1)
