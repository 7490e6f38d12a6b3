"""The gateway's process on real sockets."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from agentbus.model.ids import Seq
from agentbus.wire.links import (
    Append,
    ChannelTop,
    GatewayHello,
    Ping,
    Pong,
    Processes,
    ProcessInfo,
    Ready,
    Release,
    Renew,
    Report,
    Stop,
    StopRequested,
)
from agentbus.wire.rpc import MAX_LINE
from tests.integration.conftest import Valkey
from tests.integration.gateway.conftest import AT, GENERAL, Adapter, Gateway, Make, envelope


def send(adapter: Any, attachment: str, name: str, **params: Any) -> int:
    number: int = adapter.ask(
        "send",
        attachment=attachment,
        message_id=name,
        **{"channel": "general", "content": "x", **params},
    )
    return number


def test_a_message_goes_from_one_adapter_to_another_and_its_report_to_the_writer(
    gateway: Gateway,
) -> None:
    gateway.control.expect(Ready)
    (sender, one), (reader, two) = gateway.member(1), gateway.member(2)
    request = send(sender, one, "m1", content="é\u2028👍")
    frame = gateway.writer.expect(Append)
    assert frame.payload.content == "é\u2028👍"
    gateway.accept(frame, 1)
    assert sender.reply(request)["seq"] == 1
    gateway.show((1, envelope(1, "é\u2028👍")))
    note = reader.note("deliver")
    assert note["messages"] == [{"seq": 1, "sent_at": AT, "content": "é\u2028👍"}]
    report = reader.ask("delivered", attachment=two, epoch="1.0", positions=[(2, 1)])
    told = gateway.writer.expect(Report)
    assert (told.attachment, told.positions) == (two, [(2, 1)])
    gateway.done(told.ref)
    assert reader.reply(report) == {}


def test_connections_made_before_the_writer_is_there_wait_for_their_greeting(make: Make) -> None:
    gateway = make()
    adapter = gateway.connect()
    number = adapter.ask("hello", protocol=1, version="x")
    gateway.greet()
    assert adapter.reply(number)["instance"] == "bus"


def test_lines_come_in_any_pieces(gateway: Gateway) -> None:
    adapter, attachment = gateway.member(1)
    line = b'{"jsonrpc":"2.0","id":%d,"method":"heartbeat","params":{}}\n'
    adapter.write(line % 101 + line % 102)
    assert adapter.reply(101) == adapter.reply(102)
    for index in range(len(line % 103)):
        adapter.write((line % 103)[index : index + 1])
    assert adapter.reply(103)["attachments"] == [attachment]


def test_bad_lines_get_their_errors_and_the_connection_goes_on(gateway: Gateway) -> None:
    adapter, attachment = gateway.member(1)
    adapter.write(b"no JSON at all\n")
    assert adapter.reply(None)["code"] == -32700
    adapter.write(b'{"jsonrpc":"2.0","id":77,"method":"send","params":{"content":"')
    adapter.write(b"x" * (9 * 1024 * 1024) + b'"}}\n')
    error = adapter.reply(77)
    assert (error["code"], error["data"]["code"]) == (-32600, "message_too_large")
    assert str(MAX_LINE) in error["message"]
    assert adapter.call("nonsense")["code"] == -32601
    assert adapter.call("send", content=7)["code"] == -32602
    assert adapter.call("heartbeat")["attachments"] == [attachment]


def test_what_an_adapter_reported_before_it_died_is_committed_before_its_release(
    gateway: Gateway,
) -> None:
    """It dies with deliveries unread, so that reading from it ends with an error, not a zero."""
    adapter, attachment = gateway.member(1)
    gateway.show(*((seq, envelope(seq, "y" * 1000)) for seq in range(1, 200)))
    adapter.socket.recv(1, 2)  # MSG_PEEK: they are there
    for position in range(1, 60):
        adapter.ask("delivered", attachment=attachment, epoch="1.0", positions=[(1, position)])
    adapter.close()
    report = gateway.writer.expect(Report)
    assert report.positions == [(1, 59)]
    assert gateway.writer.expect(Release).attachment == attachment


def shout(adapter: Adapter) -> None:
    for _ in range(100_000):
        adapter.write(b'{"id":1,"method":"y"}\n' * 2000)


def test_a_peer_that_never_reads_is_cut_off_alone(make: Make) -> None:
    gateway = make(prefetch_mib=1)
    gateway.greet()
    lively, attachment = gateway.member(1)
    deaf = gateway.connect()
    deaf.hello()
    with pytest.raises(ConnectionError):
        shout(deaf)
    gateway.wait_for_log("action=cut_off")
    assert lively.call("heartbeat")["attachments"] == [attachment]


def test_a_flood_of_deliveries_stops_at_the_window_and_the_others_keep_getting_theirs(
    make: Make,
) -> None:
    gateway = make(prefetch_messages=50)
    gateway.greet()
    deaf, _ = gateway.member(1)
    lively, attachment = gateway.member(2)
    for first in range(1, 1001, 10):
        gateway.show(*((seq, envelope(seq)) for seq in range(first, first + 10)))
        assert lively.note("deliver")["through"] == first + 9
        lively.ask("delivered", attachment=attachment, epoch="1.0", positions=[(2, first + 9)])
    through = 0
    while through < 50:
        through = deaf.note("deliver")["through"]
    assert through == 50
    assert deaf.call("heartbeat")["lagging"] is False


def test_a_restarted_writer_is_asked_again_in_order(gateway: Gateway) -> None:
    adapter, attachment = gateway.member(1)
    requests = [send(adapter, attachment, f"m{number}") for number in range(20)]
    renewing = adapter.ask("renew", attachment=attachment)
    before = [gateway.writer.expect(Append) for _ in requests]
    gateway.writer.expect(Renew)
    gateway.replace_writer()
    assert gateway.writer.expect(GatewayHello).incarnation == 1
    gateway.writer.waiting[:0] = [GatewayHello(1)]
    gateway.greet()
    again = [gateway.writer.expect(Append) for _ in requests]
    assert again == before
    assert gateway.writer.expect(Renew).attachment == attachment
    for seq, frame in enumerate(again, 1):
        gateway.accept(frame, seq)
    assert [adapter.reply(request)["seq"] for request in requests] == list(range(1, 21))
    assert renewing


def test_an_orderly_stop_finishes_what_was_begun(gateway: Gateway) -> None:
    adapter, attachment = gateway.member(1)
    assert adapter.call("stop") == {}
    gateway.control.expect(StopRequested)
    request = send(adapter, attachment, "last")
    frame = gateway.writer.expect(Append)
    gateway.control.send(Stop())
    assert adapter.note("stopping") == {"reason": "stop", "intentional": True}
    gateway.accept(frame, 1)
    assert adapter.reply(request)["seq"] == 1
    assert adapter.at_end()
    assert gateway.wait() == 0


def test_it_answers_pings_and_ends_with_its_supervisor(gateway: Gateway) -> None:
    gateway.control.send(Ping(7))
    assert gateway.control.expect(Pong).number == 7
    gateway.control.socket.close()
    assert gateway.wait() != 0


def test_status_measures_the_processes(gateway: Gateway) -> None:
    assert gateway.pid is not None
    processes = [ProcessInfo("supervisor", os.getpid(), 1.7e9, 0)]
    processes.append(ProcessInfo("gateway", gateway.pid, 1.7e9, 0))
    gateway.control.send(Processes(processes))
    gateway.control.send(Ping(1))
    gateway.control.expect(Pong)
    document = gateway.connect().call("status")["status"]
    assert [each["name"] for each in document["processes"]] == ["supervisor", "gateway"]
    assert all(each["rss_bytes"] > 1_000_000 for each in document["processes"])
    assert document["state"] == "ready"


def test_out_of_descriptors_connections_are_refused_cleanly_and_the_others_live(
    make: Make,
) -> None:
    gateway = make(descriptors=48)
    gateway.greet()
    first, attachment = gateway.member(1)
    crowd = [gateway.connect() for _ in range(60)]
    for adapter in crowd:
        with suppress(BrokenPipeError):  # refused before it could ask
            adapter.ask("status")
    assert crowd[-1].at_end()
    assert first.call("heartbeat")["attachments"] == [attachment]
    for adapter in crowd:
        adapter.close()
    late = gateway.connect()
    assert late.hello()["instance"] == "bus"


# ---- Redis


def fill(valkey: Valkey, first: int, last: int, content: str = "x") -> None:
    valkey.run(
        (b"HSET", b"ab:meta", b"instance", b"bus", b"commit_id", b"1"),
        *(
            (b"XADD", b"s:1", b"%d-0" % seq, b"e", envelope(seq, content), b"s", b"900")
            for seq in range(first, last + 1)
        ),
    )


def test_a_backlog_is_read_from_redis_as_there_is_room(make: Make, valkey: Valkey) -> None:
    fill(valkey, 1, 700)
    gateway = make(prefetch_messages=100)
    gateway.greet(valkey.socket_path, ChannelTop(GENERAL, 700, Seq(1), Seq(700), AT))
    adapter, attachment = gateway.member(1, position=20)
    got: list[int] = []
    while not got or got[-1] < 700:
        note = adapter.note("deliver")
        got += [message["seq"] for message in note["messages"]]
        adapter.ask(
            "delivered", attachment=attachment, epoch="1.0", positions=[(1, note["through"])]
        )
    assert got == list(range(21, 701))


def test_history_is_read_from_redis(make: Make, valkey: Valkey) -> None:
    fill(valkey, 1, 300, "é" * 100)
    gateway = make()
    gateway.greet(valkey.socket_path, ChannelTop(GENERAL, 300, Seq(1), Seq(300), AT))
    adapter, attachment = gateway.member(1, position=300)

    def read(**bounds: int) -> tuple[list[int], bool]:
        result = adapter.call("history", attachment=attachment, channel="general", **bounds)
        return [message["seq"] for message in result["messages"]], result["more"]

    assert read() == (list(range(201, 301)), True)
    assert read(before=5) == ([1, 2, 3, 4], False)
    assert read(after=297) == ([298, 299, 300], False)
    assert read(after=0, limit=2) == ([1, 2], True)
    assert read(after=0, max_bytes=1) == ([1], True)
    assert read(after=10, before=300, limit=1000) == (list(range(11, 300)), False)


def test_a_redis_that_comes_back_is_read_again(make: Make, valkey: Valkey) -> None:
    fill(valkey, 1, 3)
    valkey.kill()
    gateway = make()
    gateway.greet(valkey.socket_path, ChannelTop(GENERAL, 3, Seq(1), Seq(3), AT))
    adapter, attachment = gateway.member(1)
    refused = adapter.call("history", attachment=attachment, channel="general")
    assert refused["data"]["code"] == "recovering"
    valkey.start()
    fill(valkey, 1, 3)
    assert [each["seq"] for each in adapter.note("deliver")["messages"]] == [1, 2, 3]
    assert adapter.call("history", attachment=attachment, channel="general")["more"] is False


def test_without_a_redis_to_read_from_history_recovers(gateway: Gateway) -> None:
    adapter, attachment = gateway.member(1)
    refused = adapter.call("history", attachment=attachment, channel="general")
    assert refused["data"]["code"] == "recovering"
    assert msgspec.json.encode(refused)
