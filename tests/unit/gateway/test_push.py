"""Messages come into the windows once and in order; who does not take them waits alone."""

from __future__ import annotations

import random
from collections import defaultdict

import msgspec
import pytest

from agentbus.gateway import push
from agentbus.gateway.events import SendLines
from agentbus.gateway.recent import KEPT_BYTES
from agentbus.mirror.read import Entry
from agentbus.model.ids import Seq, SessionId
from agentbus.wire.events import Closed, Opened, Received
from agentbus.wire.links import (
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    Done,
    GapAsk,
    GapTold,
    Release,
    Report,
    Subscribe,
    Subscribed,
    Visible,
    VisibleMessage,
)
from tests.support.gateway_rig import GENERAL, MEMORY, Rig, entries, envelope, info, top


def report(rig: Rig, connection: int, attachment: str, subscription: int, position: int) -> int:
    positions = [[subscription, position]]
    return rig.ask(connection, "delivered", attachment=attachment, epoch="1.0", positions=positions)


# ---- live


def test_what_becomes_visible_is_delivered_verbatim_without_a_read() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 2)
    assert rig.raw[connection][-1] == (
        b'{"jsonrpc":"2.0","method":"deliver","params":{"attachment":"%b","epoch":"1.0",'
        b'"subscription":1,"channel":"general","through":2,"messages":[%b,%b]}}\n'
    ) % (attachment.encode(), envelope(1), envelope(2))
    assert rig.reads == []


def test_one_line_comes_for_each_subscription_and_frame() -> None:
    rig = Rig()
    connection, _ = rig.member(1, info(1), info(2, MEMORY))
    messages = [
        VisibleMessage(channel, Seq(seq), SessionId(900), envelope(seq))
        for seq in (1, 2)
        for channel in (GENERAL, MEMORY)
    ]
    rig.event(Received(PROJECTOR_GATEWAY, Visible(1, messages)))
    notes = rig.notes(connection, "deliver")
    assert [(note["subscription"], note["through"]) for note in notes] == [(1, 2), (2, 2)]


def test_own_messages_are_not_delivered_and_through_covers_them() -> None:
    rig = Rig()
    connection, _ = rig.member(1)
    messages = [
        VisibleMessage(GENERAL, Seq(seq), SessionId(sender), envelope(seq))
        for seq, sender in ((1, 900), (2, 1), (3, 900), (4, 1))
    ]
    rig.event(Received(PROJECTOR_GATEWAY, Visible(1, messages)))
    (note,) = rig.notes(connection, "deliver")
    assert [message["seq"] for message in note["messages"]] == [1, 3]
    assert note["through"] == 4


def test_own_messages_alone_are_passed_at_the_next_heartbeat() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 2, sender=1)
    assert rig.notes(connection, "deliver") == []
    rig.call(connection, "heartbeat")
    (frame,) = rig.frames
    assert (frame.attachment, frame.positions) == (attachment, [(1, 2)])
    rig.frames.clear()
    rig.call(connection, "heartbeat")
    assert rig.frames == []


def test_own_messages_come_with_include_own() -> None:
    rig = Rig()
    connection, _ = rig.member(1, info(1, include_own=True))
    rig.show(1, 1, sender=1)
    assert rig.delivered(connection) == [1]


def test_long_pushes_are_cut_into_lines_that_can_each_be_reported() -> None:
    rig = Rig(prefetch_mib=8, max_message_kib=1024)
    connection, _ = rig.member(1)
    rig.show(1, 5, padding=400_000)
    notes = rig.notes(connection, "deliver")
    assert [note["through"] for note in notes] == [2, 4, 5]
    assert all(len(line) < 1.1 * push.LINE_BYTES for line in rig.raw[connection])


# ---- windows


def test_a_reader_that_never_reports_fills_its_window_and_stops_there() -> None:
    rig = Rig(prefetch_messages=10)
    stuck, _ = rig.member(1)
    lively, attachment = rig.member(2)
    for seq in range(1, 101):
        rig.show(seq, seq)
        report(rig, lively, attachment, 2, seq)
    assert rig.delivered(stuck) == list(range(1, 11))
    assert rig.delivered(lively) == list(range(1, 101))
    assert rig.reads == []


def test_bytes_fill_a_window_too() -> None:
    rig = Rig(prefetch_mib=1)
    connection, _ = rig.member(1)
    rig.show(1, 100, padding=50_000)
    assert rig.delivered(connection) == list(range(1, 21))


def test_room_is_filled_from_the_stream_and_then_pushes_are_live_again() -> None:
    rig = Rig(prefetch_messages=10)
    rig.project(top(1, 30))
    connection, attachment = rig.member(1)
    rig.read(entries(1, 10), more=True)
    assert rig.delivered(connection) == list(range(1, 11))
    report(rig, connection, attachment, 1, 10)
    asked = rig.read(entries(11, 20), more=True)
    assert (asked.edge, asked.forward, asked.count) == (10, True, 10)
    assert rig.delivered(connection) == list(range(11, 21))
    report(rig, connection, attachment, 1, 20)
    rig.read(entries(21, 30))
    assert rig.delivered(connection) == list(range(21, 31))
    report(rig, connection, attachment, 1, 30)
    rig.show(31, 31)
    assert rig.delivered(connection) == [31]
    assert rig.reads == []


def test_a_window_is_not_refilled_message_by_message() -> None:
    rig = Rig(prefetch_messages=100)
    connection, attachment = rig.member(1)
    rig.show(1, 300)
    assert rig.delivered(connection) == list(range(1, 101))
    for position in range(1, 25):
        report(rig, connection, attachment, 1, position)
    assert rig.delivered(connection) == []
    report(rig, connection, attachment, 1, 25)
    assert rig.delivered(connection) == list(range(101, 126))


def test_what_fits_is_pushed_however_little_it_is() -> None:
    rig = Rig(prefetch_messages=100)
    connection, attachment = rig.member(1)
    rig.show(1, 102)
    report(rig, connection, attachment, 1, 2)
    assert rig.delivered(connection)[100:] == [101, 102]


def test_what_fits_is_read_however_little_it_is() -> None:
    rig = Rig(prefetch_messages=100)
    rig.project(top(1, 102))
    connection, attachment = rig.member(1)
    rig.read(entries(1, 100), more=True)
    report(rig, connection, attachment, 1, 2)
    assert [asked.count for asked in rig.reads] == [2]


# ---- what is remembered


def bodies(rig: Rig, connection: int) -> list[bytes]:
    """The pieces of messages that the connection was sent, as they are in memory."""
    sent = [each for each in rig.effects if isinstance(each, SendLines)]
    pieces = [piece for each in sent if each.connection == connection for piece in each.lines]
    return [piece for piece in pieces if piece.startswith(b'{"seq"')]


def test_all_are_handed_the_same_bytes_also_who_has_fallen_behind() -> None:
    rig = Rig(prefetch_messages=40)
    (ahead, keen), (behind, slow) = rig.member(1), rig.member(2)
    for first in range(1, 101, 10):
        rig.show(first, first + 9)
        report(rig, ahead, keen, 1, first + 9)
    for position in range(40, 101, 20):
        report(rig, behind, slow, 2, position)
    assert rig.delivered(ahead) == rig.delivered(behind) == list(range(1, 101))
    assert list(map(id, bodies(rig, behind))) == list(map(id, bodies(rig, ahead)))
    assert rig.reads == []


def test_who_has_stopped_within_a_block_goes_on_to_its_end_and_then_by_blocks() -> None:
    rig = Rig(prefetch_messages=40)
    connection, attachment = rig.member(1)
    rig.show(1, 5)
    rig.show(6, 100)
    assert rig.notes(connection, "deliver")[-1]["through"] == 40
    for reported, through in ((15, 55), (30, 65), (40, 75), (75, 100)):
        report(rig, connection, attachment, 1, reported)
        assert rig.notes(connection, "deliver")[-1]["through"] == through


def test_own_messages_are_not_among_what_is_remembered() -> None:
    rig = Rig(prefetch_messages=4)
    connection, attachment = rig.member(1)
    rig.show(1, 5)
    rig.show(6, 7, sender=1)
    rig.show(8, 8)
    report(rig, connection, attachment, 1, 4)
    assert rig.delivered(connection) == [1, 2, 3, 4, 5, 8]
    assert rig.reads == []


def test_who_is_further_behind_than_is_remembered_is_read_for() -> None:
    rig = Rig(prefetch_messages=4)
    connection, attachment = rig.member(1)
    rig.show(1, 40, padding=KEPT_BYTES // 30)
    assert rig.delivered(connection) == [1, 2, 3, 4]
    report(rig, connection, attachment, 1, 4)
    asked = rig.read(entries(5, 8), more=True)
    assert (asked.edge, asked.count) == (4, 4)
    for position in range(8, 41, 4):
        report(rig, connection, attachment, 1, position)
        if rig.reads:
            rig.read(entries(position + 1, position + 4), more=True)
    assert rig.delivered(connection) == list(range(5, 41))
    assert rig.reads == []


def test_a_message_that_nobody_was_there_for_is_read_and_not_passed_over() -> None:
    rig = Rig(prefetch_messages=2)
    first, _ = rig.member(1)
    rig.show(1, 3)
    rig.disconnect(first)
    rig.show(4, 4)
    second, attachment = rig.member(2, info(1, position=2))
    assert rig.read(entries(4, 4)).edge == 3
    rig.show(5, 6)
    report(rig, second, attachment, 1, 4)
    assert rig.delivered(second) == [3, 4, 5, 6]
    assert rig.reads == []


def test_what_was_remembered_is_not_taken_for_that_of_another_bus() -> None:
    rig = Rig(prefetch_messages=2)
    rig.member(1)
    rig.show(1, 6)
    rig.welcome(incarnation=2, instance="another")
    rig.reads.clear()
    rig.member(2, info(1))
    assert [asked.edge for asked in rig.reads] == [0]


def test_own_messages_at_the_end_of_what_is_remembered_do_not_end_the_refill() -> None:
    rig = Rig(prefetch_messages=2)
    first, _ = rig.member(1)
    rig.show(1, 2, sender=2)
    rig.disconnect(first)
    rig.show(3, 3)
    second, _ = rig.member(2, info(1))
    rig.read(entries(3, 3))
    assert rig.delivered(second) == [3]


def test_a_message_too_large_for_the_room_there_is_waits_for_a_report() -> None:
    rig = Rig(prefetch_mib=1, max_message_kib=1024)
    connection, attachment = rig.member(1)
    rig.show(1, 1, padding=600_000)
    rig.show(2, 2, padding=600_000)
    assert rig.delivered(connection) == [1]
    report(rig, connection, attachment, 1, 1)
    assert rig.delivered(connection) == [2]
    assert rig.reads == []


def test_what_was_remembered_is_forgotten_with_its_epoch() -> None:
    rig = Rig(prefetch_messages=2)
    rig.member(1)
    rig.show(1, 6)
    rig.project(top(1, 6), rebuilds=1)
    assert [asked.edge for asked in rig.reads] == [0]


def test_a_connection_has_one_read_at_a_time_and_its_subscriptions_take_turns() -> None:
    rig = Rig(prefetch_messages=1000)
    rig.project(top(1, 600), top(2, 600))
    rig.member(1, info(1), info(2, MEMORY))
    assert len(rig.reads) == 1
    first = rig.read(entries(1, 100), more=True)
    second = rig.read(entries(1, 100), more=True)
    assert [first.channel_id, second.channel_id] == [GENERAL, MEMORY]
    assert [asked.channel_id for asked in rig.reads] == [GENERAL]


def test_attachments_share_a_window_and_none_starves() -> None:
    rig = Rig(prefetch_messages=10)
    connection = rig.connect()
    rig.attach(connection, 1, info(1))
    rig.show(1, 50)
    assert rig.delivered(connection) == list(range(1, 11))
    child = rig.attach(connection, 2, info(2, MEMORY))
    rig.show(1, 3, channel=MEMORY)
    (note,) = rig.notes(connection, "deliver")
    assert (note["attachment"], note["through"]) == (child, 1)
    report(rig, connection, child, 2, 1)
    rig.read(entries(2, 2), more=True)
    assert rig.delivered(connection) == [2]


def test_an_ended_attachment_makes_room_for_the_others() -> None:
    rig = Rig(prefetch_messages=10)
    connection = rig.connect()
    parent = rig.attach(connection, 1, info(1))
    rig.show(1, 10)
    rig.attach(connection, 2, info(2, MEMORY))
    rig.show(1, 3, channel=MEMORY)
    rig.delivered(connection)
    rig.ask(connection, "release", attachment=parent)
    rig.read(entries(2, 3))
    assert rig.delivered(connection) == [2, 3]


# ---- refills


def test_a_backlog_is_read_after_the_registration_was_answered() -> None:
    rig = Rig()
    rig.project(top(1, 8))
    connection, _ = rig.member(1, info(1, position=5))
    assert rig.delivered(connection) == []
    assert rig.read(entries(6, 8)).edge == 5
    assert rig.delivered(connection) == [6, 7, 8]


def test_what_becomes_visible_during_a_read_comes_once() -> None:
    rig = Rig()
    rig.project(top(1, 3))
    connection, _ = rig.member(1)
    rig.show(4, 4)
    rig.read(entries(1, 4))
    rig.show(5, 5)
    assert rig.delivered(connection) == [1, 2, 3, 4, 5]
    assert rig.reads == []


def test_a_message_visible_before_its_subscription_is_answered_is_not_lost() -> None:
    rig = Rig()
    connection, attachment = rig.member(1, info(7, MEMORY))
    rig.ask(connection, "subscribe", attachment=attachment, channel="general")
    frame = rig.frame(Subscribe)
    rig.show(1, 2)
    rig.outcomes(Subscribed(frame.ref, info(8, position=1), created=True))
    rig.read(entries(2, 2))
    assert rig.delivered(connection) == [2]


@pytest.mark.parametrize("how", ["fails", "finds nothing"])
def test_a_read_without_success_is_repeated_a_little_later(how: str) -> None:
    rig = Rig()
    rig.project(top(1, 2))
    connection, _ = rig.member(1)
    if how == "fails":
        rig.fail_read()
    else:
        rig.read([])
    assert rig.reads == []
    rig.sleep(push.RETRY_SECONDS + 0.01)
    rig.read(entries(1, 2))
    assert rig.delivered(connection) == [1, 2]


def test_a_stalled_subscription_does_not_hold_up_the_others_of_its_connection() -> None:
    rig = Rig()
    rig.project(top(1, 2), top(2, 2))
    connection, _ = rig.member(1, info(1), info(2, MEMORY))
    rig.fail_read()
    assert rig.read(entries(1, 2)).channel_id == MEMORY
    assert rig.delivered(connection) == [1, 2]


def test_a_hole_is_not_skipped() -> None:
    rig = Rig()
    connection, _ = rig.member(1)
    rig.show(1, 1)
    rig.show(4, 4)
    assert rig.delivered(connection) == [1]
    rig.read(entries(2, 4))
    assert rig.delivered(connection) == [2, 3, 4]


# ---- what retention removed


def tell_gap(rig: Rig, resumed_at: int, lost: int) -> GapAsk:
    """The writer answers the oldest question about a gap."""
    asked = rig.frame(GapAsk)
    rig.outcomes(GapTold(asked.ref, asked.subscription, asked.after, Seq(resumed_at), lost))
    return asked


def test_what_retention_removed_is_asked_of_the_writer_and_comes_as_a_gap() -> None:
    rig = Rig()
    rig.project(top(1, 9, oldest=6))
    connection, _ = rig.member(1, info(1, position=2))
    assert rig.reads == []
    asked = tell_gap(rig, 6, 2)
    assert (asked.subscription, asked.after) == (1, 2)
    rig.read(entries(6, 9))
    gap, rest = rig.notes(connection, "deliver")
    assert gap["gaps"] == [{"channel": "general", "after_seq": 2, "resumed_at_seq": 6, "lost": 2}]
    assert (gap["messages"], gap["through"]) == ([], 5)
    assert [message["seq"] for message in rest["messages"]] == [6, 7, 8, 9]


def test_what_is_trimmed_before_it_was_pushed_comes_as_a_gap() -> None:
    rig = Rig(prefetch_messages=2)
    connection, attachment = rig.member(1)
    rig.show(1, 9)
    assert rig.delivered(connection) == [1, 2]
    rig.trim(top(1, 9, oldest=6))
    report(rig, connection, attachment, 1, 2)
    tell_gap(rig, 6, 3)
    note, rest = rig.notes(connection, "deliver")
    assert (note["gaps"][0]["lost"], note["through"]) == (3, 5)
    assert [message["seq"] for message in rest["messages"]] == [6]


def test_a_gap_at_the_end_is_announced_without_a_message_after_it() -> None:
    rig = Rig(prefetch_messages=1)
    connection, attachment = rig.member(1)
    rig.show(1, 5)
    rig.trim(top(1, 5, count=0, oldest=6))
    report(rig, connection, attachment, 1, 1)
    tell_gap(rig, 6, 4)
    *_, note = rig.notes(connection, "deliver")
    assert (note["gaps"][0]["resumed_at_seq"], note["through"]) == (6, 5)
    assert rig.reads == []
    rig.show(6, 6)
    report(rig, connection, attachment, 1, 5)
    assert rig.delivered(connection) == [6]


def test_own_messages_that_were_removed_are_no_gap() -> None:
    rig = Rig()
    rig.project(top(1, 9, oldest=6))
    connection, _ = rig.member(1, info(1, position=2))
    tell_gap(rig, 6, 0)
    assert rig.notes(connection, "deliver") == []
    rig.read(entries(6, 6))
    assert rig.delivered(connection) == [6]


def test_an_empty_stream_of_a_channel_with_messages_has_lost_them_all() -> None:
    rig = Rig(start=False)
    rig.event(Opened(GATEWAY_WRITER))
    rig.event(Opened(PROJECTOR_GATEWAY))
    rig.welcome(general=9)
    rig.project(top(1, 0, count=0, oldest=0))
    connection, _ = rig.member(1, info(1, position=2))
    tell_gap(rig, 10, 7)
    (note,) = rig.notes(connection, "deliver")
    assert (note["gaps"][0]["lost"], note["through"]) == (7, 9)


def test_what_is_not_visible_yet_is_not_lost() -> None:
    rig = Rig(start=False)
    rig.event(Opened(GATEWAY_WRITER))
    rig.event(Opened(PROJECTOR_GATEWAY))
    rig.commit = 3
    rig.welcome(general=9)
    rig.commit = 2
    rig.project(top(1, 0, count=0, oldest=0))
    rig.member(1, info(1, position=2))
    assert rig.framed(GapAsk) == []


def test_after_everything_was_removed_the_next_message_comes_with_its_gap() -> None:
    rig = Rig()
    rig.project(top(1, 0, count=0, oldest=0))
    connection, _ = rig.member(1, info(1, position=2))
    rig.show(8, 8)
    tell_gap(rig, 8, 5)
    gap, message = rig.notes(connection, "deliver")
    assert (gap["gaps"][0]["lost"], message["through"]) == (5, 8)


def test_a_gap_that_the_writer_cannot_tell_is_asked_for_again() -> None:
    rig = Rig()
    rig.project(top(1, 9, oldest=6))
    connection, _ = rig.member(1, info(1, position=2))
    rig.refuse(rig.frame(GapAsk).ref, "storage_error")
    assert rig.framed(GapAsk) == []
    rig.sleep(push.RETRY_SECONDS + 0.01)
    tell_gap(rig, 6, 3)
    assert rig.notes(connection, "deliver")[0]["gaps"][0]["lost"] == 3


def test_a_gap_of_an_earlier_epoch_is_nothing() -> None:
    rig = Rig()
    rig.project(top(1, 9, oldest=6))
    connection, _ = rig.member(1, info(1, position=2))
    asked = rig.frame(GapAsk)
    rig.project(top(1, 9, oldest=6), rebuilds=1)
    again = rig.frame(GapAsk)
    rig.outcomes(GapTold(asked.ref, asked.subscription, asked.after, Seq(6), 3))
    assert rig.notes(connection, "deliver") == []
    rig.outcomes(GapTold(again.ref, again.subscription, again.after, Seq(6), 3))
    assert rig.notes(connection, "deliver")[0]["epoch"] == "1.1"


# ---- epochs and readiness


def test_nothing_is_read_while_the_projection_is_not_ready() -> None:
    rig = Rig()
    rig.project(top(1, 3), ready=False)
    connection, _ = rig.member(1)
    assert rig.reads == []
    rig.project(top(1, 3))
    rig.read(entries(1, 3))
    assert rig.delivered(connection) == [1, 2, 3]


def test_what_was_projected_while_nobody_told_us_is_read() -> None:
    rig = Rig()
    connection, _ = rig.member(1)
    rig.show(1, 1)
    rig.event(Closed(PROJECTOR_GATEWAY))
    rig.event(Opened(PROJECTOR_GATEWAY))
    rig.project(top(1, 3), boot="another")
    rig.read(entries(2, 3))
    assert rig.delivered(connection) == [1, 2, 3]
    assert rig.notes(connection, "epoch") == []


def test_a_rebuild_begins_an_epoch_and_everything_unconfirmed_comes_again() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 4)
    report(rig, connection, attachment, 1, 2)
    rig.sleep(0.03)
    rig.outcomes(Done(rig.frame(Report).ref))
    assert rig.delivered(connection) == [1, 2, 3, 4]
    rig.project(ready=False, rebuilds=1)
    assert rig.notes(connection, "epoch") == [{"epoch": "1.1"}]
    rig.project(top(1, 4), rebuilds=1)
    assert rig.notes(connection, "epoch") == []
    rig.read(entries(3, 4))
    (note,) = rig.notes(connection, "deliver")
    assert (note["epoch"], note["through"], len(note["messages"])) == ("1.1", 4, 2)


def test_a_reply_from_before_the_rebuild_is_dropped() -> None:
    rig = Rig()
    rig.project(top(1, 3))
    connection, _ = rig.member(1)
    (old,) = rig.reads
    rig.project(top(1, 3), rebuilds=1)
    new = rig.reads[1]
    assert new.ref != old.ref
    rig.read(entries(1, 3))
    assert rig.delivered(connection) == []
    rig.read(entries(1, 3))
    assert rig.delivered(connection) == [1, 2, 3]


def test_a_connection_that_has_gone_is_pushed_nothing() -> None:
    rig = Rig()
    rig.project(top(1, 3))
    connection, _ = rig.member(1)
    rig.disconnect(connection)
    assert len(rig.framed(Release)) == 1
    rig.read(entries(1, 3))
    rig.show(4, 4)
    assert rig.inbox[connection] == []
    assert rig.reads == []


# ---- at random


class Crowd:
    """Four sessions on two channels, with an adapter each that reports when it is told to."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rig = Rig(prefetch_messages=self.rng.choice([3, 10, 50]))
        self.streams: dict[int, list[Entry]] = {GENERAL: [], MEMORY: []}
        self.members = [
            (*self.rig.member(n, info(2 * n), info(2 * n + 1, MEMORY)), n) for n in range(1, 5)
        ]
        self.got: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.through: dict[tuple[int, int], int] = {}

    def send(self) -> None:
        channel = self.rng.choice([GENERAL, MEMORY])
        first = len(self.streams[channel]) + 1
        last = first + self.rng.randint(0, 4)
        sender = self.rng.randint(1, 6)
        self.streams[channel] += entries(first, last, sender=sender)
        if self.rng.random() < 0.9:
            self.rig.show(first, last, channel=channel, sender=sender)

    def reply(self) -> None:
        if not self.rig.reads:
            return
        asked = self.rig.reads.pop(self.rng.randrange(len(self.rig.reads)))
        self.rig.reads.insert(0, asked)
        found = [each for each in self.streams[asked.channel_id] if each.seq > (asked.edge or 0)]
        part = found[: self.rng.randint(0, asked.count)]
        self.rig.read(part, more=len(part) < len(found))

    def report(self) -> None:
        if self.through:
            connection, subscription = self.rng.choice(sorted(self.through))
            position = self.through.pop((connection, subscription))
            attachment = self.members[connection - 1][1]
            report(self.rig, connection, attachment, subscription, position)

    def wait(self) -> None:
        self.rig.sleep(0.2)

    def survey(self) -> None:
        tops = [top(channel, len(stream)) for channel, stream in self.streams.items() if stream]
        self.rig.project(*tops)

    def collect(self) -> None:
        for connection, _, _ in self.members:
            self.rig.call(connection, "heartbeat")
            for note in self.rig.notes(connection, "deliver"):
                key = (connection, note["subscription"])
                self.got[key] += [message["seq"] for message in note["messages"]]
                self.through[key] = note["through"]

    def settle(self) -> None:
        self.survey()
        for _ in range(1000):
            for _ in self.members:
                self.report()
                self.reply()
            self.wait()
            self.collect()

    def wanted(self, session: int, channel: int) -> list[int]:
        return [each.seq for each in self.streams[channel] if each.session_id != session]


@pytest.mark.parametrize("seed", range(12))
def test_every_subscriber_gets_everything_once_and_in_order(seed: int) -> None:
    crowd = Crowd(seed)
    actions = [crowd.send, crowd.reply, crowd.report, crowd.wait, crowd.survey]
    for _ in range(300):
        crowd.rng.choices(actions, [8, 6, 4, 1, 1])[0]()
        crowd.collect()
    crowd.settle()
    for connection, _, number in crowd.members:
        assert crowd.got[connection, 2 * number] == crowd.wanted(number, GENERAL)
        assert crowd.got[connection, 2 * number + 1] == crowd.wanted(number, MEMORY)


def test_a_deliver_line_is_one_json_object() -> None:
    rig = Rig()
    connection, _ = rig.member(1)
    rig.show(1, 1)
    assert msgspec.json.decode(rig.raw[connection][-1])["method"] == "deliver"
