"""Changes of memories and inspections, through the gateway's process."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.wire.links import (
    Accepted,
    Append,
    ChannelOpened,
    MemoryChanged,
    MemoryEdit,
    Mutated,
    NoReceipt,
    Outcomes,
    ReceiptAsk,
    Subscribe,
    Subscribed,
    SubscriptionInfo,
    Visible,
    VisibleMessage,
)
from tests.integration.gateway.conftest import AT, Adapter, Gateway, Make, envelope

MEMORY = ChannelId(2)


def follow_memories(gateway: Gateway, adapter: Adapter, attachment: str) -> None:
    gateway.writer.send(ChannelOpened(ChannelInfo(MEMORY, "memory", "memory", Seq(0))))
    number = adapter.ask("subscribe", attachment=attachment, channel="memory")
    frame = gateway.writer.expect(Subscribe)
    held = SubscriptionInfo(frame.ref, "memory", MEMORY, Seq(0), 2e9, False)
    gateway.outcomes(Subscribed(frame.ref, held, created=True))
    adapter.reply(number)


def show_memory(gateway: Gateway, content: str) -> None:
    message = VisibleMessage(MEMORY, Seq(1), SessionId(900), envelope(1, content), "k")
    gateway.projector.send(Visible(CommitId(gateway.commit), [message]))


def change(gateway: Gateway, content: str) -> MemoryChanged:
    gateway.commit += 1
    body = envelope(1, content)
    return MemoryChanged(MEMORY, "k", Seq(1), 2, SessionId(900), CommitId(gateway.commit), body)


def edit(adapter: Adapter, attachment: str) -> int:
    return adapter.ask(
        "memory.edit", attachment=attachment, memory_id="k", operation_id="e", content="new"
    )


def test_whoever_holds_a_revision_has_its_successor_before_the_editor_has_the_answer(
    gateway: Gateway,
) -> None:
    (holder, one), (editor, two) = gateway.member(1), gateway.member(2)
    follow_memories(gateway, holder, one)
    show_memory(gateway, "old")
    holder.note("deliver")
    for turn in range(20):
        send = editor.ask(
            "send", attachment=two, message_id=f"m{turn}", channel="general", content="x"
        )
        append = gateway.writer.expect(Append)
        number = edit(editor, two)
        asked = gateway.writer.expect(MemoryEdit)
        changed = change(gateway, f"new {turn}")
        # An answer for the editor is on its way already when the change is told.
        accepted = Accepted(append.ref, append.message_id, Seq(turn + 1), AT, False)
        mutated = Mutated(asked.ref, "k", 2, 1, duplicate=False)
        gateway.writer.send(
            Outcomes(changed.commit_id, [accepted]),
            changed,
            Outcomes(changed.commit_id, [mutated]),
        )
        editor.reply(send)
        assert editor.reply(number)["revision"] == 2
        waiting = holder.socket.recv(1 << 20, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        assert b'"method":"revise"' in waiting
        assert holder.note("revise")["message"]["content"] == f"new {turn}"
        assert holder.note("notice")["kind"] == "memory_changed"


def test_whoever_does_not_read_misses_notices_and_nothing_else(make: Make) -> None:
    gateway = make(prefetch_mib=1, max_message_kib=256)
    gateway.greet()
    reader, one = gateway.member(1)
    follow_memories(gateway, reader, one)
    for turn in range(40):
        changed = change(gateway, f"{turn} " + "x" * 200_000)
        gateway.writer.send(changed)
    show_memory(gateway, "last")
    reader.call("heartbeat")
    notices = [note for note in reader.notes if note["method"] == "notice"]
    assert 1 <= len(notices) < 40
    assert len(reader.note("deliver")["messages"]) == 1


def test_a_denied_send_is_logged_without_what_was_sent(make: Make, tmp_path: Path) -> None:
    hook = tmp_path / "hook.py"
    hook.write_text(
        "import json, sys\n"
        "content = json.load(sys.stdin)['payload']['content']\n"
        "denied = {'decision': 'deny', 'reason': 'no plans'}\n"
        "print(json.dumps(denied if 'plan' in content else {'decision': 'allow'}))\n"
    )
    gateway = make(inspection_command=(sys.executable, "-S", "-E", str(hook)))
    gateway.greet()
    sender, attachment = gateway.member(1)

    def send(name: str, content: str) -> int:
        given: dict[str, Any] = {"channel": "general", "message_id": name, "content": content}
        number = sender.ask("send", attachment=attachment, **given)
        gateway.outcomes(NoReceipt(gateway.writer.expect(ReceiptAsk).ref))
        return number

    error = sender.reply(send("m1", "the secret plan"))
    assert error["data"]["code"] == "inspection_rejected"
    assert error["data"]["reason"] == "no plans"
    allowed = send("m2", "nothing much")
    frame = gateway.writer.expect(Append)
    assert frame.message_id == "m2"
    gateway.accept(frame, 1)
    assert sender.reply(allowed)["seq"] == 1
    gateway.wait_for_log("inspection_rejected")
    log = gateway.log()
    assert 'operation_id=m1 sender=Sam session=1 reason="no plans"' in log
    assert "secret" not in log


def test_a_memory_is_read_from_the_database_or_says_why_not(gateway: Gateway) -> None:
    reader, attachment = gateway.member(1)
    error = reader.call("memory.get", attachment=attachment, memory_id="k")
    assert error["data"]["code"] == "unavailable"
