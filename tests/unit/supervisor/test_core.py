from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentbus.model.ports import Instant
from agentbus.supervisor import events as ev
from agentbus.supervisor.core import Core, RedisFacts
from agentbus.supervisor.handover import End
from agentbus.supervisor.services import REDIS, SERVICES, Service
from agentbus.wire.error_codes import Failure
from agentbus.wire.events import Exit, WakeAt, Woke
from agentbus.wire.links import (
    Failing,
    Hindered,
    Ping,
    Pong,
    Processes,
    Ready,
    RedisDown,
    RedisUnfit,
    RedisUp,
    SearchBackend,
    Stop,
    StopRequested,
    Taken,
    WriterHindered,
)

LOGS = {name: f"/logs/{name}.log" for name in ("writer", "projector", "gateway", "redis")}
FAILURE = Failure("database_damaged", "look at it")


class Shell:
    """Carries out the core's effects on processes that exist only here."""

    def __init__(self, services=SERVICES) -> None:
        self.core = Core(services, 1, RedisFacts("/bin/redis-server", "7.4.0"), LOGS)
        self.now = 100.0
        self.living: dict[str, int] = {}
        self.pids = iter(range(1000, 10_000_000))
        self.effects: list[ev.Effect] = []
        self.wake_at = 0.0
        self.code: int | None = None
        self.listening = False
        self.held_by: int | None = None
        self.unforkable: set[str] = set()
        self.redis_lost = False
        self.displaced = ""
        self.states: dict[str, str] = {}
        self.unremovable = ""

    def handle(self, event: ev.Event) -> list[ev.Effect]:
        """The effects of an event and of the answers to them, in the order of being carried out."""
        done: list[ev.Effect] = []
        waiting = list(self.core.handle(event, self._instant()))
        while waiting:
            effect = waiting.pop(0)
            done.append(effect)
            answer = self._perform(effect)
            if answer is not None:
                waiting += self.core.handle(answer, self._instant())
        self.effects += done
        return done

    def _instant(self) -> Instant:
        return Instant(self.now, 1e9 + self.now)

    def _perform(self, effect: ev.Effect) -> ev.Event | None:  # noqa: C901
        assert self.code is None, f"{effect} after the exit"
        match effect:
            case ev.Fork(name, _) if name in self.unforkable:
                return ev.ForkFailed(name, "no memory")
            case ev.Fork(name, _):
                return self._born(name, "")
            case ev.StartRedis() if self.held_by is not None:
                return ev.RedisHeld(self.held_by)
            case ev.StartRedis():
                return self._born(REDIS, "/run/redis.sock")
            case ev.ProbeRedis(pid) if self.listening:
                return ev.RedisListens(pid)
            case ev.Observe():
                states = {name: self.states.get(name, "running") for name in self.living}
                return ev.Observed(states, self.redis_lost, self.displaced)
            case ev.Tell(name, _):
                assert name in self.living, effect
            case ev.HandEnd(end):
                assert end.owner in self.living, effect
            case ev.Kill(name, pid):
                assert self.living.get(name) == pid, effect
            case ev.Wipe():
                assert not self.living, "removing what is in use"
                return ev.Wiped(self.unremovable)
            case WakeAt(when):
                self.wake_at = when
            case Exit(code):
                assert not self.living, "left running"
                self.code = code
        return None

    def _born(self, name: str, path: str) -> ev.Event:
        assert name not in self.living, f"a second {name}"
        self.living[name] = next(self.pids)
        self.states.pop(name, None)
        return ev.Forked(name, self.living[name], path)

    # what happens

    def say(self, name: str, message) -> list[ev.Effect]:
        return self.handle(ev.Said(name, message))

    def die(self, name: str, status: int = -9) -> list[ev.Effect]:
        return self.handle(ev.Died(name, self.living.pop(name), status))

    def wait(self, seconds: float) -> list[ev.Effect]:
        """Lets time pass, with every wake that is asked for."""
        until = self.now + seconds
        done: list[ev.Effect] = []
        while self.code is None and self.wake_at <= until:
            self.now = max(self.now, self.wake_at)
            done += self.handle(Woke())
        self.now = until
        return done

    def beat(self, seconds: float) -> list[ev.Effect]:
        """Lets time pass while every child answers its pings."""
        done: list[ev.Effect] = []
        for _ in range(int(seconds)):
            done += self.wait(1.0)
            for name in self.living:
                if name != REDIS:
                    done += self.say(name, Pong(0))
        return done

    def up(self) -> Shell:
        """Started, everything ready."""
        self.handle(ev.Started())
        self.listening = True
        self.wait(0.05)
        for name in ("projector", "writer", "gateway"):
            self.say(name, Ready())
        return self


@pytest.fixture
def shell():
    return Shell()


def of(kind, effects):
    return [effect for effect in effects if isinstance(effect, kind)]


def told(effects, name, kind):
    return [
        effect.message
        for effect in of(ev.Tell, effects)
        if effect.name == name and isinstance(effect.message, kind)
    ]


# ---- starting


def test_everything_is_started_at_once(shell):
    effects = shell.handle(ev.Started())
    assert {effect.name for effect in of(ev.Fork, effects)} == {"projector", "writer", "gateway"}
    assert of(ev.StartRedis, effects) == [ev.StartRedis(keep_snapshot=True)]


def test_both_ends_of_every_link_are_given_along_with_the_forks(shell):
    given = [end for fork in of(ev.Fork, shell.handle(ev.Started())) for end in fork.ends]
    assert sorted((end.link, end.number, end.owner) for end in given) == [
        ("gateway-indexer", 1, "gateway"),
        ("gateway-writer", 1, "gateway"),
        ("gateway-writer", 1, "writer"),
        ("projector-gateway", 1, "gateway"),
        ("projector-gateway", 1, "projector"),
        ("writer-projector", 1, "projector"),
        ("writer-projector", 1, "writer"),
    ]


def test_ready_is_reported_when_the_last_needed_service_is(shell):
    shell.handle(ev.Started())
    assert not of(ev.ReportReady, shell.say("gateway", Ready()))
    assert not of(ev.ReportReady, shell.say("writer", Ready()))
    assert of(ev.ReportReady, shell.say("projector", Ready()))


def test_ready_is_reported_once(shell):
    shell.up()
    shell.die("writer")
    shell.say("writer", Ready())
    assert len(of(ev.ReportReady, shell.effects)) == 1


def test_redis_is_announced_to_the_projector_when_it_listens(shell):
    shell.handle(ev.Started())
    assert not told(shell.wait(0.5), "projector", RedisUp)
    shell.listening = True
    effects = shell.wait(0.05)
    up = RedisUp("/run/redis.sock", shell.living[REDIS], "/bin/redis-server", "7.4.0")
    assert told(effects, "projector", RedisUp) == [up]
    assert not told(effects, "writer", RedisUp)


def test_the_gateway_is_told_of_every_change_of_the_processes(shell):
    shell.up()
    listed = told(shell.effects, "gateway", Processes)[-1].processes
    assert [process.name for process in listed] == [
        "supervisor",
        "projector",
        "writer",
        "gateway",
        "redis",
    ]
    assert listed[0].pid == 1
    shell.die("writer")
    listed = told(shell.effects, "gateway", Processes)[-1].processes
    assert [(p.pid, p.restarts) for p in listed if p.name == "writer"] == [
        (shell.living["writer"], 1)
    ]


def test_an_unchanged_list_is_not_sent_again(shell):
    shell.up()
    assert not told(shell.beat(10), "gateway", Processes)


# ---- dying


def test_a_dead_child_is_replaced_at_once_and_its_peers_get_fresh_ends(shell):
    shell.up()
    effects = shell.die("writer")
    (fork,) = of(ev.Fork, effects)
    assert set(fork.ends) == {
        End("gateway-writer", 2, "writer"),
        End("writer-projector", 2, "writer"),
    }
    assert {effect.end for effect in of(ev.HandEnd, effects)} == {
        End("gateway-writer", 2, "gateway"),
        End("writer-projector", 2, "projector"),
    }


def test_the_next_transfer_waits_for_the_one_before(shell):
    shell.up()
    first = of(ev.HandEnd, shell.die("writer"))
    assert len([hand for hand in first if hand.end.owner == "gateway"]) == 1
    second = shell.die("projector")
    assert not [hand for hand in of(ev.HandEnd, second) if hand.end.owner == "gateway"]
    third = shell.say("gateway", Taken("gateway-writer", 2))
    assert of(ev.HandEnd, third) == [ev.HandEnd(End("projector-gateway", 2, "gateway"))]


def test_the_sixth_death_in_a_minute_stops_the_daemon_with_an_error(shell):
    shell.up()
    for _ in range(5):
        shell.die("writer", 1)
        shell.wait(2.5)
        shell.say("writer", Ready())
    effects = shell.die("writer", 1)
    (report,) = of(ev.ReportFailure, effects)
    assert report.failure.code == "internal"
    assert "writer keeps dying, the last time with exit code 1" in report.failure.message
    assert "/logs/writer.log" in report.failure.message
    assert told(effects, "gateway", Stop)


def test_three_deaths_before_ready_are_enough(shell):
    shell.handle(ev.Started())
    shell.die("gateway", 70)
    shell.die("gateway", 70)
    shell.wait(0.2)
    assert of(ev.ReportFailure, shell.die("gateway", 70))


def test_a_fork_that_fails_is_a_death(shell):
    shell.up()
    shell.unforkable.add("writer")
    shell.die("writer")
    effects = shell.wait(5)
    assert "no memory" in of(ev.ReportFailure, shell.effects)[0].failure.message
    assert effects


def test_an_optional_service_that_keeps_dying_is_left_out():
    services = (*SERVICES, Service("portal", "portal:run", (), needed=False))
    shell = Shell(services).up()
    for _ in range(6):
        if "portal" in shell.living:
            shell.die("portal", 1)
        shell.wait(2.5)
    assert "portal" not in shell.living
    assert not of(ev.ReportFailure, shell.effects)
    assert shell.code is None


def test_a_failing_child_stops_the_daemon_with_what_it_said(shell):
    shell.handle(ev.Started())
    effects = shell.say("writer", Failing(FAILURE))
    assert of(ev.ReportFailure, effects) == [ev.ReportFailure(FAILURE)]
    shell.die("gateway", 0)
    shell.die("writer", 78)
    shell.die("projector", 0)
    shell.die(REDIS, 0)
    assert shell.code == 1


def test_what_keeps_a_child_from_its_work_ends_a_start_and_is_told(shell):
    shell.handle(ev.Started())
    effects = shell.say("writer", Hindered(FAILURE))
    assert of(ev.ReportFailure, effects) == [ev.ReportFailure(FAILURE)]


def test_a_daemon_that_served_goes_on_and_the_gateway_hears_what_hinders_the_writer(shell):
    shell.up()
    effects = shell.say("writer", Hindered(FAILURE))
    assert not of(ev.ReportFailure, effects)
    told = [tell for tell in of(ev.Tell, effects) if isinstance(tell.message, WriterHindered)]
    assert told == [ev.Tell("gateway", WriterHindered(FAILURE))]


def test_a_restarted_gateway_hears_what_hinders_the_writer_as_long_as_that_is_so(shell):
    shell.up()
    shell.die("writer")
    shell.say("writer", Hindered(FAILURE))
    assert told(shell.die("gateway"), "gateway", WriterHindered) == [WriterHindered(FAILURE)]
    shell.say("writer", Ready())
    shell.beat(2)
    assert told(shell.die("gateway"), "gateway", WriterHindered) == []


def test_the_death_of_an_earlier_incarnation_is_nothing(shell):
    shell.up()
    old = shell.living["writer"]
    shell.die("writer")
    assert not of(ev.Fork, shell.handle(ev.Died("writer", old, -9)))


# ---- Redis


def test_the_projector_hears_of_the_death_and_of_the_successor(shell):
    shell.up()
    effects = shell.die(REDIS)
    assert told(effects, "projector", RedisDown) == [RedisDown("the server ended with signal 9")]
    assert of(ev.StartRedis, effects) == [ev.StartRedis(keep_snapshot=True)]
    assert told(shell.wait(0.05), "projector", RedisUp)


def test_a_server_that_ended_of_itself_is_replaced_without_its_snapshot(shell):
    shell.up()
    assert of(ev.StartRedis, shell.die(REDIS, 1)) == [ev.StartRedis(keep_snapshot=False)]
    shell.wait(0.05)
    shell.die(REDIS, -9)
    assert of(ev.StartRedis, shell.wait(1)) == [ev.StartRedis(keep_snapshot=True)]


def test_a_restarted_projector_is_told_of_the_running_server(shell):
    shell.up()
    assert told(shell.die("projector"), "projector", RedisUp)


def test_an_unfit_server_is_killed_and_replaced_without_its_snapshot(shell):
    shell.up()
    pid = shell.living[REDIS]
    effects = shell.say("projector", RedisUnfit(pid, False, Failure("redis_incompatible", "no")))
    assert of(ev.Kill, effects) == [ev.Kill(REDIS, pid)]
    assert of(ev.StartRedis, shell.die(REDIS)) == [ev.StartRedis(keep_snapshot=False)]


def test_a_complaint_about_an_earlier_server_is_nothing(shell):
    shell.up()
    effects = shell.say("projector", RedisUnfit(7, True, FAILURE))
    assert not of(ev.Kill, effects)
    assert not of(ev.ReportFailure, effects)


def test_a_server_that_can_never_do_stops_the_daemon(shell):
    shell.up()
    failure = Failure("redis_incompatible", "no streams")
    effects = shell.say("projector", RedisUnfit(shell.living[REDIS], True, failure))
    assert of(ev.ReportFailure, effects) == [ev.ReportFailure(failure)]


def test_servers_that_are_all_unfit_end_in_the_projectors_words(shell):
    shell.up()
    failure = Failure("redis_incompatible", "it forgets")
    while not of(ev.ReportFailure, shell.effects):
        shell.say("projector", RedisUnfit(shell.living[REDIS], False, failure))
        shell.die(REDIS)
        shell.beat(3)
    assert of(ev.ReportFailure, shell.effects)[0].failure == failure


def test_a_server_from_before_is_waited_for(shell):
    shell.held_by = 77
    shell.handle(ev.Started())
    assert len(of(ev.StartRedis, shell.beat(2))) > 5
    shell.held_by = None
    shell.wait(0.2)
    assert REDIS in shell.living


def test_a_server_from_before_that_never_ends_is_an_error(shell):
    shell.held_by = 77
    shell.handle(ev.Started())
    for name in ("projector", "writer", "gateway"):
        shell.say(name, Ready())
    shell.beat(62)
    assert "pid 77" in of(ev.ReportFailure, shell.effects)[0].failure.message


# ---- liveness


def test_children_are_pinged_every_two_seconds(shell):
    shell.up()
    effects = shell.beat(10)
    assert len(told(effects, "writer", Ping)) == 5
    assert not told(effects, REDIS, Ping)


def test_a_silent_child_is_killed_after_thirty_seconds(shell):
    shell.up()
    pids = dict(shell.living)
    for _ in range(40):
        shell.wait(1.0)
        for name in ("projector", "gateway"):
            shell.say(name, Pong(0))
    kills = of(ev.Kill, shell.effects)
    assert kills == [ev.Kill("writer", pids["writer"])]


def test_a_stopped_child_is_killed_about_two_seconds_after_it_is_seen(shell):
    shell.up()
    shell.states["gateway"] = "stopped"
    assert not of(ev.Kill, shell.wait(1.5))
    assert of(ev.Kill, shell.wait(2.6)) == [ev.Kill("gateway", shell.living["gateway"])]


def test_a_stopped_redis_is_killed_too(shell):
    shell.up()
    shell.states[REDIS] = "stopped"
    assert of(ev.Kill, shell.wait(4.1)) == [ev.Kill(REDIS, shell.living[REDIS])]


def test_nobody_is_blamed_for_a_time_in_which_the_supervisor_did_not_run(shell):
    shell.up()
    shell.wait(5)
    shell.now += 3600
    effects = shell.handle(Woke())
    effects += shell.beat(10)
    assert not of(ev.Kill, effects)


def test_a_child_whose_link_is_closed_has_a_second_to_end(shell):
    shell.up()
    pid = shell.living["writer"]
    shell.handle(ev.FellSilent("writer", pid))
    assert not of(ev.Kill, shell.wait(0.9))
    assert of(ev.Kill, shell.wait(0.2)) == [ev.Kill("writer", pid)]


def test_a_child_that_ends_after_closing_its_link_is_not_killed(shell):
    shell.up()
    shell.handle(ev.FellSilent("writer", shell.living["writer"]))
    shell.die("writer", 70)
    assert not of(ev.Kill, shell.wait(2))


# ---- stopping


@pytest.mark.parametrize(
    "ask",
    [
        lambda shell: shell.handle(ev.StopSignal(15)),
        lambda shell: shell.say("gateway", StopRequested()),
    ],
)
def test_services_stop_one_after_the_other_and_redis_last(shell, ask):
    shell.up()
    assert told(ask(shell), "gateway", Stop) == [Stop(snapshot=False)]
    assert told(shell.die("gateway", 0), "writer", Stop) == [Stop(snapshot=False)]
    assert told(shell.die("writer", 0), "projector", Stop) == [Stop(snapshot=True)]
    assert of(ev.Kill, shell.die("projector", 0)) == [
        ev.Kill(REDIS, shell.living[REDIS], gently=True)
    ]
    shell.die(REDIS, 0)
    assert shell.code == 0
    assert not of(ev.ReportFailure, shell.effects)


def test_the_socket_refuses_as_soon_as_nobody_will_accept(shell):
    shell.up()
    assert not of(ev.CloseListener, shell.handle(ev.StopSignal(15)))
    assert of(ev.CloseListener, shell.die("gateway", 0))
    assert not of(ev.CloseListener, shell.die("writer", 0))


def test_without_redis_no_snapshot_is_asked_for(shell):
    shell.handle(ev.Started())
    shell.handle(ev.StopSignal(15))
    shell.die("gateway", 0)
    assert told(shell.die("writer", 0), "projector", Stop) == [Stop(snapshot=False)]


def test_each_has_its_own_grace(shell):
    shell.up()
    shell.handle(ev.StopSignal(15))
    gateway, writer = shell.living["gateway"], shell.living["writer"]
    assert not of(ev.Kill, shell.wait(4.9))
    assert of(ev.Kill, shell.wait(0.2)) == [ev.Kill("gateway", gateway)]
    shell.die("gateway")
    assert of(ev.Kill, shell.wait(5.1)) == [ev.Kill("writer", writer)]
    shell.die("writer")
    assert not of(ev.Kill, shell.wait(34.9))
    assert of(ev.Kill, shell.wait(0.2)) == [ev.Kill("projector", shell.living["projector"])]


def test_who_dies_during_the_stop_does_not_come_back(shell):
    shell.up()
    shell.handle(ev.StopSignal(15))
    shell.die("projector")
    shell.die("writer")
    effects = shell.wait(3)
    assert not of(ev.Fork, effects)
    shell.die("gateway", 0)
    shell.die(REDIS)
    assert shell.code == 0


def test_who_was_waiting_to_be_restarted_is_not(shell):
    shell.up()
    shell.die("writer")
    shell.die("writer")
    assert "writer" not in shell.living
    shell.handle(ev.StopSignal(15))
    assert not of(ev.Fork, shell.wait(2))


def test_a_second_signal_changes_nothing(shell):
    shell.up()
    shell.handle(ev.StopSignal(15))
    assert not of(ev.Tell, shell.handle(ev.StopSignal(15)))


def test_a_failure_during_the_stop_does_not_make_it_one(shell):
    shell.up()
    shell.handle(ev.StopSignal(15))
    assert not of(ev.ReportFailure, shell.say("writer", Failing(FAILURE)))


# ---- whatever happens


class Anything(RuleBasedStateMachine):
    """Deaths, words and time in any order; the shell's own assertions hold throughout."""

    def __init__(self) -> None:
        super().__init__()
        self.shell = Shell()
        self.shell.handle(ev.Started())
        self.stop_asked_at: float | None = None

    def alive(self) -> bool:
        return self.shell.code is None and bool(self.shell.living)

    @precondition(alive)
    @rule(data=st.data(), status=st.sampled_from([0, 1, -9, -15]))
    def die(self, data, status) -> None:
        self.shell.die(data.draw(st.sampled_from(sorted(self.shell.living))), status)

    @precondition(alive)
    @rule(data=st.data(), message=st.sampled_from([Ready(), Pong(1), StopRequested()]))
    def say(self, data, message) -> None:
        names = sorted(set(self.shell.living) - {REDIS})
        if names:
            self.shell.say(data.draw(st.sampled_from(names)), message)

    @precondition(alive)
    @rule()
    def take_ends(self) -> None:
        for effect in of(ev.HandEnd, self.shell.effects)[-3:]:
            if effect.end.owner in self.shell.living:
                self.shell.say(effect.end.owner, Taken(effect.end.link, effect.end.number))

    @precondition(alive)
    @rule(data=st.data(), fatal=st.booleans())
    def complain(self, data, fatal) -> None:
        if "projector" in self.shell.living:
            pid = self.shell.living.get(REDIS, 0)
            self.shell.say("projector", RedisUnfit(pid, fatal, FAILURE))

    @precondition(alive)
    @rule(data=st.data())
    def fall_silent(self, data) -> None:
        name = data.draw(st.sampled_from(sorted(self.shell.living)))
        self.shell.handle(ev.FellSilent(name, self.shell.living[name]))

    @rule(seconds=st.sampled_from([0.005, 0.1, 1.0, 2.5, 35.0]))
    def wait(self, seconds) -> None:
        if self.shell.code is None:
            self.shell.wait(seconds)

    @rule(listening=st.booleans(), held=st.sampled_from([None, 5]))
    def change_redis(self, listening, held) -> None:
        self.shell.listening, self.shell.held_by = listening, held

    @rule(
        name=st.sampled_from(["writer", "projector", "gateway"]),
        state=st.sampled_from(["stopped", "running"]),
    )
    def suspend(self, name, state) -> None:
        self.shell.states[name] = state

    @rule()
    def stop(self) -> None:
        if self.shell.code is None:
            self.shell.handle(ev.StopSignal(15))

    @invariant()
    def it_never_sleeps_for_ever(self) -> None:
        assert self.shell.code is not None or self.shell.wake_at <= self.shell.now + 1.0

    def teardown(self) -> None:
        """Asked to stop, it ends, if what it kills dies."""
        if self.shell.code is None:
            self.shell.handle(ev.StopSignal(15))
        for _ in range(200):
            if self.shell.code is not None:
                break
            for effect in of(ev.Kill, self.shell.wait(1.0)):
                if self.shell.living.get(effect.name) == effect.pid:
                    self.shell.die(effect.name)
            for name in [n for n, pid in self.shell.living.items() if self._killed(n, pid)]:
                self.shell.die(name)
        assert self.shell.code is not None

    def _killed(self, name: str, pid: int) -> bool:
        return any(
            isinstance(effect, ev.Kill) and (effect.name, effect.pid) == (name, pid)
            for effect in self.shell.effects
        )


Anything.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestAnything = Anything.TestCase


# ---- sockets


def test_a_redis_whose_socket_is_gone_is_replaced_with_its_snapshot(shell):
    shell.up()
    shell.redis_lost = True
    assert of(ev.Kill, shell.wait(1.5)) == [ev.Kill(REDIS, shell.living[REDIS])]
    shell.redis_lost = False
    assert of(ev.StartRedis, shell.die(REDIS)) == [ev.StartRedis(keep_snapshot=True)]


def test_a_redis_that_does_not_listen_yet_has_no_socket_to_lose(shell):
    shell.up()
    shell.listening = False
    shell.die(REDIS)
    shell.redis_lost = True
    assert not of(ev.Kill, shell.beat(5))


def test_a_daemon_whose_place_is_anothers_stops_in_order_and_says_so(shell):
    shell.up()
    shell.displaced = "process 7 serves here now"
    effects = shell.wait(1.5)
    assert of(ev.ReportFailure, effects)[0].failure.message == "process 7 serves here now"
    assert told(effects, "gateway", Stop)


def test_a_service_that_is_not_needed_is_given_up_and_the_gateway_told(shell):
    shell.up()
    shell.say("projector", SearchBackend(True))
    for _ in range(6):
        shell.say("indexer", Ready())
        effects = shell.die("indexer")
        told_last = told(effects, "gateway", Processes)[-1].given_up
        shell.wait(2.1)
    assert told_last == ["indexer"]
    assert "indexer" not in shell.living
    assert shell.code is None
    effects = shell.say("projector", SearchBackend(True))
    assert told(effects, "gateway", Processes)[-1].given_up == []
