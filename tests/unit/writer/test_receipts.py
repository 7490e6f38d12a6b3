"""Asking whether an operation was carried out."""

from __future__ import annotations

from typing import Any

from agentbus.wire.links import (
    WRITER_PROJECTOR,
    Accepted,
    MemoryDelete,
    MemoryEdit,
    Mutated,
    NoReceipt,
    Readiness,
    ReceiptAsk,
    Refused,
)
from tests.support.writer_world import World


def code(answer: Any) -> str:
    assert isinstance(answer, Refused), answer
    return answer.failure.code


def ask(world: World, attachment: Any, name: str, mark: bytes) -> ReceiptAsk:
    return ReceiptAsk(world.ref(), attachment, name, mark)


def test_what_was_never_done_has_no_receipt(world: World) -> None:
    sam = world.register()
    (answer,) = world.ask(ask(world, sam.attachment, "a", b"1"))
    assert answer == NoReceipt(answer.ref)


def test_a_send_is_told_again_as_it_was(world: World) -> None:
    sam = world.register()
    send = world.append(sam.attachment, "a", "x", channel="memory")
    (original,) = world.ask(send)
    (answer,) = world.ask(ask(world, sam.attachment, "a", send.fingerprint))
    assert isinstance(answer, Accepted)
    assert answer.duplicate
    facts = ("message_id", "seq", "sent_at", "memory_id", "revision")
    assert [getattr(answer, f) for f in facts] == [getattr(original, f) for f in facts]


def test_mutations_are_told_again_as_they_were(world: World) -> None:
    sam = world.register()
    (made,) = world.ask(world.append(sam.attachment, "a", "x", channel="memory"))
    world.ask(
        MemoryEdit(world.ref(), sam.attachment, made.memory_id, "e", b"e", "y"),
        MemoryDelete(world.ref(), sam.attachment, made.memory_id, "d", b"d"),
    )
    edited, deleted = world.ask(
        ask(world, sam.attachment, "e", b"e"), ask(world, sam.attachment, "d", b"d")
    )
    assert edited == Mutated(edited.ref, made.memory_id, 2, 1, True)
    assert deleted == Mutated(deleted.ref, made.memory_id, None, 2, True)


def test_what_comes_before_it_in_its_batch_is_seen(world: World) -> None:
    sam = world.register()
    send = world.append(sam.attachment, "a", "x")
    before, _, after = world.ask(
        ask(world, sam.attachment, "a", send.fingerprint),
        send,
        ask(world, sam.attachment, "a", send.fingerprint),
    )
    assert isinstance(before, NoReceipt)
    assert isinstance(after, Accepted)


def test_another_session_or_payload_is_a_conflict(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    send = world.append(sam.attachment, "a", "x")
    world.ask(send)
    answers = world.ask(
        ask(world, sam.attachment, "a", b"other"),
        ask(world, eve.attachment, "a", send.fingerprint),
    )
    assert [code(answer) for answer in answers] == ["operation_id_conflict"] * 2


def test_a_row_whose_receipt_has_expired_is_a_conflict(world: World) -> None:
    sam = world.register()
    send = world.append(sam.attachment, "a", "x")
    world.ask(send)
    with world.store.transaction():
        world.store._connection.execute("DELETE FROM receipts")
    (answer,) = world.ask(ask(world, sam.attachment, "a", send.fingerprint))
    assert code(answer) == "operation_id_conflict"


def test_while_recovering_nothing_is_told(world: World) -> None:
    sam = world.register()
    world.tell(WRITER_PROJECTOR, Readiness(False, "rebuilding"))
    (answer,) = world.ask(ask(world, sam.attachment, "a", b"1"))
    assert code(answer) == "recovering"
    world.tell(WRITER_PROJECTOR, Readiness(True, ""))
    (answer,) = world.ask(ask(world, world.attachment(), "a", b"1"))
    assert code(answer) == "stale_attachment"
