"""The blocking client and the administration on a real daemon."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import msgspec
import pytest

from agentbus.client import admin
from agentbus.client.client import Client
from agentbus.client.start import start
from agentbus.config import Configuration, load
from agentbus.errors import ConfigInvalid, NotFound, NotRunning, Unavailable
from agentbus.runtime.platform import process_state
from agentbus.wire.rpc import (
    DeliverNote,
    Empty,
    HeartbeatParams,
    HeartbeatResult,
    StatusResult,
    StoppingNote,
)
from tests.support.daemon import Daemon


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """A place of the test's own, which is also this process'."""
    with Daemon() as daemon:
        for name in ("AGENTBUS_RUNTIME_DIR", "AGENTBUS_CONFIG"):
            monkeypatch.setenv(name, daemon.environment[name])
        yield daemon


def configuration(place: Daemon) -> Configuration:
    return load(place.config_path)


def test_a_message_travels_between_two_clients(place: Daemon) -> None:
    place.start()
    path = place.paths.socket
    with Client(path) as one, Client(path) as two:
        for client in (one, two):
            assert client.hello(configuration(place)).state == "ready"
        sender = one.register("tests", "one", agent="Ann")
        receiver = two.register("tests", "two", agent="Bob")
        assert one.create_channel(sender.attachment, "x").created
        assert two.subscribe(receiver.attachment, "x").created
        sent = one.send(sender.attachment, "x", "m1", "hello", metadata={"a": 1})
        assert one.send(sender.attachment, "x", "m1", "hello", metadata={"a": 1}).duplicate
        note = two.next_note()
        assert isinstance(note, DeliverNote)
        assert note.attachment == receiver.attachment
        (message,) = [msgspec.json.decode(each) for each in note.messages]
        assert (message["content"], message["sender"], message["seq"]) == ("hello", "Ann", sent.seq)
        two.delivered(receiver.attachment, note.epoch, [(note.subscription, note.through)])
        (moved,) = [
            each for each in two.renew(receiver.attachment).subscriptions if each.channel == "x"
        ]
        assert moved.position == sent.seq
        assert two.heartbeat().attachments == [receiver.attachment]
        assert len(two.history(receiver.attachment, "x").messages) == 1
        assert {each.name for each in two.list_channels(receiver.attachment).channels} == {
            "general",
            "memory",
            "x",
        }
        assert two.unsubscribe(receiver.attachment, "x").removed
        with pytest.raises(NotFound):
            one.send(sender.attachment, "nowhere", "m2", "x")
        two.release(receiver.attachment)
        assert two.heartbeat().attachments == []
        assert two.next_note(0.0) is None


def test_requests_may_be_sent_without_waiting(place: Daemon) -> None:
    place.start()
    with Client(place.paths.socket) as client:
        client.hello()
        status = client.ask("status", Empty())
        beats = [client.ask("heartbeat", HeartbeatParams()) for _ in range(3)]
        assert [client.answer(each, HeartbeatResult).attachments for each in beats] == [[]] * 3
        assert client.answer(status, StatusResult).status["state"] == "ready"


def test_administration_needs_no_equal_settings(place: Daemon) -> None:
    place.start()
    other = msgspec.structs.replace(configuration(place).settings, recv_default_count=7)
    changed = msgspec.structs.replace(configuration(place), settings=other)
    assert admin.status(changed)["state"] == "ready"
    admin.stop(changed)
    assert place.ended()


def test_a_stop_returns_when_the_last_process_is_gone(place: Daemon) -> None:
    place.start()
    found = configuration(place)
    pids = [process["pid"] for process in admin.status(found)["processes"]]
    with Client(place.paths.socket) as watcher:
        watcher.hello()
        admin.stop(found)
        note = watcher.next_note()
        assert isinstance(note, StoppingNote)
        assert note.intentional
        assert watcher.wait_closed(1)
    assert [process_state(pid) for pid in pids] == ["gone"] * len(pids)
    with pytest.raises(NotRunning):
        admin.stop(found)
    with pytest.raises(NotRunning):
        admin.status(found)


def test_a_daemon_is_started_once_by_many(place: Daemon) -> None:
    found = configuration(place)
    pids: list[int] = []
    threads = [threading.Thread(target=lambda: pids.append(start(found))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 4
    assert len(set(pids)) == 1
    assert admin.status(found)["processes"][0]["pid"] == pids[0]
    admin.stop(found)


def test_a_daemon_that_cannot_start_says_why(place: Daemon) -> None:
    found = configuration(place)
    with open(place.config_path, "wb") as file:
        file.write(b'{"redis_budget_mib": 1}')
    with pytest.raises(ConfigInvalid, match="redis_budget_mib"):
        start(found)


def test_a_daemon_that_is_not_there_does_not_answer(place: Daemon) -> None:
    with pytest.raises(NotRunning):
        Client(place.paths.socket)
    place.start()
    with Client(place.paths.socket) as client:
        client.hello()
        admin.stop(configuration(place))
        with pytest.raises(Unavailable):
            client.heartbeat()
