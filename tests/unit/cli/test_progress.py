from __future__ import annotations

import pytest

from agentbus.cli import progress
from agentbus.cli.progress import Progress, waits_for
from agentbus.client import admin
from agentbus.config import load
from agentbus.errors import NotRunning, Unavailable
from agentbus.model.ports import Instant


class World:
    """Documents that a daemon shows one after the other, the last for ever; time goes by looks."""

    def __init__(self, monkeypatch, tmp_path):
        self.seconds = 0.0
        self.documents = []
        monkeypatch.setattr(progress, "SystemClock", lambda: self)
        monkeypatch.setattr(progress.select, "select", self._sleep)
        monkeypatch.setattr(admin, "status", self._status)
        file = tmp_path / "config.json"
        file.write_text("{}")
        self.configuration = load(str(file))

    def now(self):
        return Instant(self.seconds, self.seconds)

    def show(self, *documents):
        self.documents = list(documents)
        self.progress = Progress(self.configuration)
        return self.progress

    def _sleep(self, *_):
        self.seconds += 1.0

    def _status(self, _):
        found = self.documents.pop(0) if len(self.documents) > 1 else self.documents[0]
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def world(monkeypatch, tmp_path):
    return World(monkeypatch, tmp_path)


def recovering(commit, **more):
    return {
        "state": "recovering",
        "reasons": ["the projection is not up to date (catching up)"],
        "redis": {"commit_id": commit, "lag_commits": 100 - commit, "dataset_bytes": 5 << 20},
        "sqlite": {"commit_id": 100},
        **more,
    }


READY = {"state": "ready", "reasons": []}


def test_a_bus_that_is_ready_soon_is_waited_for_without_words(world, capsys):
    world.show(NotRunning("no daemon runs"), recovering(1), READY).wait()
    assert capsys.readouterr() == ("", "")


def test_a_long_recovery_is_told_as_it_goes_on_and_never_given_up(world, capsys):
    steps = [recovering(commit // 2) for commit in range(200)]
    world.show(*steps, READY).wait()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(set(lines)) == 99
    assert lines[-1] == (
        "agentbus is not ready yet: the projection is not up to date (catching up); "
        "99 of 100 commits; 5 MiB in Redis"
    )


def test_a_bus_in_which_nothing_moves_is_given_up_with_what_it_waits_for(world, capsys):
    stuck = {"state": "starting", "reasons": ["the writer is not there"]}
    with pytest.raises(Unavailable, match=r"not ready: the writer is not there; .*logs tells more"):
        world.show(stuck).wait()
    assert world.seconds > progress.STUCK_SECONDS
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_daemon_that_cannot_be_asked_is_not_quoted_before_it_has_said_why_it_ends(world, capsys):
    gone = Unavailable("the daemon has ended the connection")
    progress = world.show(recovering(1), gone, gone, gone)
    for _ in range(4):
        progress.look()
        world.seconds += 2.0
    assert "ended the connection" not in capsys.readouterr().err
    with pytest.raises(Unavailable, match="the daemon has ended the connection"):
        progress.wait()


def test_a_bus_that_is_stopped_meanwhile_is_not_waited_for(world):
    with pytest.raises(Unavailable, match="the daemon is stopping"):
        world.show({"state": "stopping", "reasons": ["the daemon is stopping"]}).wait()
    assert world.seconds == 0


def test_while_another_daemon_ends_a_look_refuses_nothing(world):
    assert world.show({"state": "stopping", "reasons": []}).look() == "stopping"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"state": "starting"}, "it is starting"),
        ({"state": "starting", "redis": None, "reasons": ["a\nb"]}, "a b"),
        (recovering(100, redis={"lag_commits": None}, reasons=["x"]), "x"),
    ],
)
def test_a_status_is_one_line_whatever_it_knows(document, text):
    assert waits_for(document) == text
