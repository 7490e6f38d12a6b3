"""Lines to adapters are what `wire.rpc` says, and envelopes are spliced as they are."""

from __future__ import annotations

import msgspec

from agentbus.errors import RateLimited
from agentbus.gateway import replies
from agentbus.model.ids import AttachmentId, Epoch, Seq, SubscriptionId
from agentbus.wire.error_codes import APPLICATION_ERROR, INVALID_REQUEST, ErrorData, RpcError
from agentbus.wire.rpc import DeliverNote, Empty, EpochNote, Gap, Reply, StoppingNote

HEAD = replies.deliver_head(AttachmentId("1.2"), Epoch("1.0"), SubscriptionId(7), 'a"b/ü')


def reply(line: bytes) -> Reply:
    assert line.endswith(b"\n")
    return msgspec.json.decode(line, type=Reply)


def test_a_deliver_line_reads_as_its_note() -> None:
    body = b'{"seq":1},{"seq":  2}'
    line = b"".join(replies.deliver(HEAD, Seq(5), [body]))
    note = msgspec.json.decode(reply(line).params, type=DeliverNote)
    assert (note.attachment, note.epoch, note.subscription) == ("1.2", "1.0", 7)
    assert (note.channel, note.through, note.gaps) == ('a"b/ü', 5, [])
    assert [bytes(message) for message in note.messages] == [b'{"seq":1}', b'{"seq":  2}']


def test_bodies_of_several_blocks_are_one_list() -> None:
    line = b"".join(replies.deliver(HEAD, Seq(3), [b"{}", b"{},{}"], behind=True))
    note = msgspec.json.decode(reply(line).params, type=DeliverNote)
    assert (len(note.messages), note.behind) == (3, True)


def test_gaps_come_with_messages_or_alone() -> None:
    gap = Gap(channel="a", after_seq=1, resumed_at_seq=4, lost=2)
    for body, count in ((b"", 0), (b"{}", 1)):
        line = b"".join(replies.deliver(HEAD, Seq(3), [body], [gap]))
        note = msgspec.json.decode(reply(line).params, type=DeliverNote)
        assert (note.gaps, len(note.messages)) == ([gap], count)


def test_results_repeat_the_id_as_it_was() -> None:
    for identity in (7, 'a"b', "7"):
        answer = reply(replies.result(replies.request_id(identity), Empty()))
        assert (answer.id, bytes(answer.result), answer.error) == (identity, b"{}", None)


def test_application_errors_carry_their_code_and_when_to_try_again() -> None:
    answer = reply(replies.error(b"1", RateLimited("wait", retry_after_ms=50)))
    assert answer.error is not None
    assert answer.error.code == APPLICATION_ERROR
    data = msgspec.convert(answer.error.data, ErrorData)
    assert data == ErrorData("rate_limited", "wait", True, None, 50)


def test_faults_have_codes_of_json_rpc_and_ours_beside_them() -> None:
    line = replies.fault(replies.NO_ID, INVALID_REQUEST, RateLimited("x"))
    answer = reply(line)
    assert answer.id is None
    assert isinstance(answer.error, RpcError)
    assert answer.error.code == INVALID_REQUEST


def test_notifications_have_a_method_and_no_id() -> None:
    epoch = reply(replies.epoch(Epoch("1.3")))
    assert (epoch.method, epoch.id) == ("epoch", None)
    assert msgspec.json.decode(epoch.params, type=EpochNote).epoch == "1.3"
    note = StoppingNote(reason="stop", intentional=True)
    assert (
        msgspec.json.decode(
            reply(replies.notification(b"stopping", note)).params, type=StoppingNote
        )
        == note
    )
