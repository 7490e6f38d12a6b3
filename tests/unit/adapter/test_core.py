"""What the adapter does about everything that can happen on either side of it."""

from __future__ import annotations

import json

import pytest

from agentbus.adapter.events import (
    Asked,
    DaemonData,
    DaemonUnreachable,
    StdinClosed,
    StdinData,
    StdoutBroken,
    Woke,
)
from agentbus.adapter.identity import Project
from agentbus.config import Settings
from agentbus.errors import (
    ConfigInvalid,
    ConfigMismatch,
    NotFound,
    RateLimited,
    Recovering,
    RedisMissing,
    SessionAlreadyConnected,
    StaleAttachment,
    StorageFailed,
    Unavailable,
)

NOTHING = {
    "messages": [],
    "gaps": [],
    "expired": [],
    "notices": [],
    "dropped_notices": 0,
    "more": False,
}


def contents(result) -> list[str]:
    return [each["content"] for each in result["messages"]]


# the way to the daemon


def test_the_daemon_is_reached_for_before_anybody_asks(make):
    world = make().begin()
    assert [method for method, _ in world.requests] == ["hello"]
    assert world.requests[0][1]["fingerprint"] == Settings().fingerprint()


def test_the_handshake_and_the_list_of_tools_wait_for_no_daemon(make):
    world = make()
    world.running = False
    world.start_error = Unavailable("it died")
    world.begin().greet()
    world.feed("tools/list", 1)
    assert [each["id"] for each in world.lines] == ["hi", 1]


def test_a_daemon_that_does_not_run_is_started(make):
    world = make()
    world.running = False
    world.begin().greet()
    assert world.started == 1
    assert world.now_result("whoami")["display_name"] == "Sam"


def test_a_daemon_that_died_while_starting_is_started_again_for_a_call(make):
    world = make()
    world.running = False
    world.start_error = Unavailable("it died")
    world.begin().greet()
    identifier = world.call("whoami")
    world.pass_time(1)
    assert world.result(identifier) is None
    world.start_error = None
    world.pass_time(2)
    assert world.result(identifier)["agent"] == "Sam"


def test_a_daemon_that_never_comes_up_is_hardly_tried_while_idle_and_at_once_for_a_call(
    make,
):
    world = make()
    world.running = False
    world.start_error = Unavailable("it was killed")
    world.begin().greet()
    world.pass_time(600)
    started = world.started
    assert started < 40
    world.start_error = None
    assert world.now_result("whoami")["agent"] == "Sam"
    assert world.started == started + 1


def test_a_starting_daemon_that_never_reports_is_looked_for_all_the_same(make):
    world = make()
    world.running = False
    world.silent_start = True
    world.begin().greet()
    world.pass_time(50)
    assert world.started == 1
    world.running = True
    world.pass_time(20)
    assert world.now_result("whoami")["agent"] == "Sam"


@pytest.mark.parametrize("error", [RedisMissing("install a Redis"), StorageFailed("disk full")])
def test_what_a_person_must_mend_is_told_at_once_and_tried_again_by_the_next_call(make, error):
    world = make()
    world.running = False
    world.start_error = error
    world.begin().greet()
    assert world.now_result("whoami")["error"]["code"] == error.code
    started = world.started
    again = world.call("whoami")
    assert world.started == started
    world.pass_time(1)
    assert world.result(again)["error"]["code"] == error.code
    assert world.started == started + 1
    world.pass_time(20)
    assert world.started == started + 1
    world.start_error = None
    assert world.now_result("whoami")["agent"] == "Sam"


def test_other_settings_are_told_and_the_next_call_looks_again(make):
    world = make()
    hello = world.answers["hello"]
    world.answers["hello"] = ConfigMismatch("restart it")
    world.begin().greet()
    assert world.now_result("whoami")["error"]["code"] == "config_mismatch"
    assert not world.connected
    world.answers["hello"] = hello
    world.pass_time(2)
    assert world.now_result("whoami")["agent"] == "Sam"


def test_who_did_at_once_what_the_error_said_is_not_told_it_again(make):
    world = make()
    hello = world.answers["hello"]
    world.answers["hello"] = ConfigMismatch("restart it")
    world.begin().greet()
    assert world.now_result("whoami")["error"]["code"] == "config_mismatch"
    world.answers["hello"] = hello
    identifier = world.call("whoami")
    world.pass_time(1)
    assert world.result(identifier)["agent"] == "Sam"


def test_who_asks_again_and_again_is_told_again_and_nobody_is_asked_in_a_hurry(make):
    world = make()
    world.answers["hello"] = ConfigMismatch("restart it")
    world.begin().greet()
    before = len(world.asked("hello"))
    for _ in range(20):
        identifier = world.call("whoami")
        world.pass_time(1)
        assert world.result(identifier)["error"]["code"] == "config_mismatch"
    assert len(world.asked("hello")) <= before + 20


def test_a_configuration_that_cannot_be_read_is_told(make):
    world = make()
    world.running = False
    world.start_error = Unavailable("not reached")
    world.begin().greet()
    identifier = world.call("whoami")
    world.event(DaemonUnreachable(ConfigInvalid("bad file")))
    assert world.result(identifier)["error"]["code"] == "config_invalid"


def test_a_lost_connection_is_made_again_and_the_session_registers_again(world):
    world.lose()
    world.pass_time(1)
    assert len(world.asked("register")) == 2
    first, second = world.asked("register")
    assert second == {**first, "again": True}
    assert world.now_result("whoami")["display_name"] == "Sam"


def test_a_killed_daemon_is_started_again(world):
    world.lose(running=False)
    world.pass_time(2)
    assert world.started == 1
    assert world.connected


def test_an_intentional_stop_is_respected_until_the_next_call(world):
    world.note("stopping", reason="stop", intentional=True)
    world.lose(running=False)
    world.pass_time(60)
    assert world.started == 0
    identifier = world.call("whoami")
    assert world.started == 1
    assert world.result(identifier)["agent"] == "Sam"


def test_a_recv_that_a_stop_has_met_says_so_when_its_time_is_over(world):
    identifier = world.call("recv", wait_seconds=20)
    world.note("stopping", reason="stop", intentional=True)
    world.lose(running=False)
    world.pass_time(19)
    assert world.result(identifier) is None
    world.pass_time(2)
    assert "the bus was stopped; call again" in world.result(identifier)["error"]["message"]
    assert world.started == 0


def test_a_recv_goes_on_where_somebody_else_has_started_the_bus_again(world):
    identifier = world.call("recv", wait_seconds=20)
    world.note("stopping", reason="stop", intentional=True)
    world.lose(running=False)
    world.pass_time(3)
    world.running = True
    world.pass_time(19)
    assert world.result(identifier) == NOTHING


def test_a_daemon_that_keeps_crashing_is_not_started_again_before_the_next_call(world):
    for _ in range(5):
        world.lose()
        world.pass_time(1)
    world.lose(running=False)
    world.pass_time(60)
    assert world.started == 0
    identifier = world.call("whoami")
    assert world.started == 1
    assert world.result(identifier)["agent"] == "Sam"


def test_crashes_that_are_far_apart_are_each_repaired(world):
    for _ in range(9):
        world.lose(running=False)
        world.pass_time(13)
        assert world.connected
    assert world.started == 9


def test_a_daemon_that_somebody_else_started_is_joined_after_an_intentional_stop(world):
    world.note("stopping", reason="stop", intentional=True)
    world.lose(running=False)
    world.pass_time(20)
    world.running = True
    world.pass_time(6)
    assert world.connected
    assert world.started == 0


def test_calls_under_way_at_an_intentional_stop_are_told(world):
    world.answers["send"] = None
    sent = world.call("send", channel="general", content="x")
    waiting = world.call("recv", wait_seconds=5)
    world.note("stopping", reason="stop", intentional=True)
    world.lose(running=False)
    assert world.result(sent)["error"]["code"] == "unavailable"
    assert world.result(waiting) is None
    world.pass_time(6)
    assert world.result(waiting)["error"]["code"] == "unavailable"
    assert world.started == 0


def test_heartbeats_come_every_ten_seconds(world):
    world.pass_time(35)
    assert len(world.asked("heartbeat")) == 3


def test_an_attachment_that_is_not_alive_any_more_is_made_again(world):
    world.attachments.clear()
    world.pass_time(10)
    assert len(world.asked("register")) == 2


def test_a_daemon_that_has_gone_silent_is_left(world):
    world.answers["heartbeat"] = None
    world.pass_time(25)
    assert world.connects == 1
    world.pass_time(20)
    assert world.connects == 2


@pytest.mark.parametrize(
    "nonsense", [b"x\n", b'{"id":1,"result":{"bad":1}}\n', b"z" * (9 << 20) + b"\n"]
)
def test_a_daemon_that_talks_nonsense_is_left(world, nonsense):
    world.answers["send"] = None
    world.call("send", channel="general", content="x")
    nonsense = nonsense.replace(b'"id":1', b'"id":%d' % (world.held[0][0]))
    world.event(DaemonData(nonsense))
    world.pass_time(1)
    assert world.connects == 2


def test_a_daemon_whose_messages_are_none_is_left(world):
    world.deliver("x", messages=[{"content": "no place"}])
    world.pass_time(1)
    assert world.connects == 2
    assert world.now_result("recv") == NOTHING


# sessions


def test_a_session_registers_with_its_repository_when_the_client_is_known(world):
    (params,) = world.asked("register")
    assert params == {
        "application": "tests",
        "session": "random",
        "repository": "repo",
        "repository_root": "/code/repo",
    }


def test_the_project_file_names_agent_and_channels(make):
    project = Project("/r", "r", agent="Ann", channels=["c"])
    world = make(project=project).begin().greet()
    (params,) = world.asked("register")
    assert (params["agent"], params["channels"]) == ("Ann", ["c"])


def test_an_agent_given_at_start_is_stronger_than_the_project_file(make):
    world = make(project=Project("/r", agent="Ann"), agent="Bob").begin().greet()
    assert world.asked("register")[0]["agent"] == "Bob"


def test_a_project_file_that_cannot_be_used_is_told_by_every_tool(make):
    project = Project("/r", problem=ConfigInvalid("/r/.agentbus.json is not JSON"))
    world = make(project=project).begin().greet()
    assert world.now_result("whoami")["error"]["code"] == "config_invalid"
    assert world.asked("register") == []


def test_a_fixed_session_registers_before_the_client_speaks(make):
    world = make(application="codex", session="S").begin()
    assert world.asked("register")[0]["session"] == "S"


def test_whoami_needs_no_question_to_the_daemon(world):
    before = len(world.requests)
    result = world.now_result("whoami")
    assert result["session"] == "random"
    assert result["repository"] == "repo"
    assert result["subscriptions"][0]["channel"] == "general"
    assert len(world.requests) == before


def test_a_claimed_session_is_tried_until_the_other_claim_expires(make):
    world = make()
    world.answers["register"] = SessionAlreadyConnected("somebody has it")
    world.begin().greet()
    identifier = world.call("whoami")
    world.pass_time(25)
    assert world.result(identifier) is None
    assert len(world.asked("register")) > 5
    world.answers["register"] = world._register
    world.pass_time(3)
    assert world.result(identifier)["display_name"] == "Sam"


def test_a_session_that_stays_claimed_is_reported_after_the_expiry(make):
    world = make()
    world.answers["register"] = SessionAlreadyConnected("somebody has it")
    world.begin().greet()
    identifier = world.call("whoami")
    world.pass_time(29)
    assert world.result(identifier) is None
    world.pass_time(5)
    assert world.result(identifier)["error"]["code"] == "session_already_connected"
    tries = len(world.asked("register"))
    world.pass_time(60)
    assert len(world.asked("register")) == tries
    assert world.now_result("whoami")["error"]["code"] == "session_already_connected"
    assert len(world.asked("register")) == tries + 1


def test_a_registration_that_is_refused_for_good_is_told(make):
    world = make()
    world.answers["register"] = NotFound("no")
    world.begin().greet()
    assert world.now_result("whoami")["error"]["code"] == "not_found"


def codex(thread: str, root: str, **more: str) -> dict[str, object]:
    return {"threadId": thread, "sessionId": root, "x-codex-turn-metadata": more}


def test_codex_says_with_each_call_who_is_calling(make):
    world = make().begin().greet("codex-mcp-client")
    assert world.asked("register") == []
    assert world.result(world.call("whoami", codex("r", "r")))["session"] == "r"
    child = world.call("whoami", codex("c", "r", subagent_kind="review"))
    assert world.result(child)["child"] == "c"
    root, subagent = world.asked("register")
    assert (root["application"], root["session"], root.get("child")) == ("codex", "r", None)
    assert (subagent["session"], subagent["child"]) == ("r", "c")
    assert (subagent["parent"], subagent["role"]) == ("r", "review")
    assert world.asked("release") == []


def test_a_new_root_releases_the_last_one_and_its_children(make):
    world = make().begin().greet("codex-mcp-client")
    world.call("whoami", codex("r", "r"))
    world.call("whoami", codex("c", "r"))
    waiting = world.call("recv", codex("r", "r"), wait_seconds=50)
    world.call("whoami", codex("n", "n"))
    assert [each["attachment"] for each in world.asked("release")] == ["1.2", "1.1"]
    assert world.result(waiting) == NOTHING
    assert world.now_result("whoami")["session"] == "n"


def bound(world, tool_use: str, session: str, **more: str) -> dict[str, str]:
    """A hook says who calls; the `_meta` of that call."""
    hook = {"session_id": session, "tool_use_id": tool_use} | more
    assert world.now_result("bind_caller", **hook) == {"bound": True}
    return {"claudecode/toolUseId": tool_use}


def test_a_child_on_a_shared_pipe_has_a_name_and_a_cursor_of_its_own(make):
    world = make(claude_session="S").begin().greet("claude-code")
    root = bound(world, "t1", "S")
    child = bound(world, "t2", "S", agent_id="a7", agent_type="review")
    world.call("whoami", root)
    told = world.result(world.call("whoami", child))
    assert (told["session"], told["child"]) == ("S", "a7")
    (_, subagent) = world.asked("register")
    assert (subagent["child"], subagent["parent"], subagent["role"]) == ("a7", "S", "review")
    assert world.asked("release") == []
    for attachment, content in (("1.1", "to the parent"), ("1.2", "to the child")):
        world.deliver(content, attachment=attachment)
    for meta, content in ((child, "to the child"), (root, "to the parent")):
        assert contents(world.result(world.call("recv", meta))) == [content]
    assert [each["attachment"] for each in world.asked("delivered")] == ["1.2", "1.1"]
    world.answers["send"] = None
    world.call("send", child, channel="general", content="x")
    assert world.asked("send")[0]["attachment"] == "1.2"


def test_calls_of_children_leave_a_recv_of_their_parent_waiting(make):
    world = make(claude_session="S").begin().greet("claude-code")
    waiting = world.call("recv", bound(world, "t1", "S"), wait_seconds=50)
    for number in range(5):
        world.call("whoami", bound(world, f"c{number}", "S", agent_id=f"a{number}"))
    assert world.result(waiting) is None
    world.deliver("one", attachment="1.1")
    assert contents(world.result(waiting)) == ["one"]


def test_after_a_clear_the_process_goes_on_with_the_new_session(make):
    world = make(claude_session="old").begin().greet("claude-code")
    assert world.now_result("whoami")["session"] == "old"
    waiting = world.call("recv", wait_seconds=50)
    told = world.result(world.call("whoami", bound(world, "t1", "new")))
    assert told["session"] == "new"
    assert world.result(waiting) == NOTHING
    assert [each["attachment"] for each in world.asked("release")] == ["1.1"]
    assert world.now_result("whoami")["session"] == "new"


def test_a_binding_alone_moves_nothing(make):
    world = make(claude_session="old").begin().greet("claude-code")
    waiting = world.call("recv", wait_seconds=50)
    bound(world, "t1", "new")
    assert world.result(waiting) is None
    assert world.asked("release") == []


def test_a_hook_is_answered_although_no_daemon_runs(make):
    world = make()
    world.running = False
    world.silent_start = True
    world.begin().greet("claude-code")
    bound(world, "t1", "S")


def test_a_claim_waits_until_the_one_before_it_is_given_back(make):
    """Else the name of the session is still somebody's."""
    world = make(claude_session="stale")
    world.answers["register"] = None
    world.begin().greet("claude-code")
    meta = bound(world, "t1", "S")
    identifier = world.call("whoami", meta)
    (held,) = [each for each in world.held if each[1] == "register"]
    world.answers["register"] = world._register
    world.answer(held[0], world._register(held[2]))
    methods = [method for method, _ in world.requests]
    assert methods[-2:] == ["release", "register"]
    assert world.result(identifier)["session"] == "S"


def test_a_claim_that_nobody_wants_any_more_and_is_refused_holds_up_nobody(make):
    world = make(claude_session="stale")
    world.answers["register"] = None
    world.begin().greet("claude-code")
    identifier = world.call("whoami", bound(world, "t1", "S"))
    held = world.held[0]
    world.answers["register"] = world._register
    world.answer(held[0], SessionAlreadyConnected("somebody has it"))
    assert world.result(identifier)["session"] == "S"
    assert world.asked("release") == []


def test_the_subagents_that_were_idle_for_longest_make_room(make):
    world = make().begin().greet("claude-code")
    for number in range(70):
        world.call("whoami", bound(world, f"t{number}", "S", agent_id=f"a{number}"))
        world.call("whoami", bound(world, f"u{number}", "S", agent_id="a0"))
    claims = {f"1.{n}": each.get("child") for n, each in enumerate(world.asked("register"), 1)}
    released = [claims[each["attachment"]] for each in world.asked("release")]
    assert released == [None] + [f"a{number}" for number in range(1, len(released))]
    assert len(claims) - len(released) == 64
    again = world.call("whoami", bound(world, "again", "S", agent_id="a69"))
    assert world.result(again)["child"] == "a69"
    assert len(world.asked("release")) == len(released)


def test_an_operation_of_a_session_that_was_released_before_it_was_asked_is_told(make):
    world = make(claude_session="S")
    world.running = False
    world.silent_start = True
    world.begin().greet("claude-code")
    identifier = world.call("send", bound(world, "t1", "S"), channel="general", content="x")
    world.call("whoami", bound(world, "t2", "T"))
    assert world.result(identifier)["error"]["code"] == "unavailable"


def test_notifications_of_nobody_and_of_kinds_to_come_are_nothing(world):
    world.note("from the future", x=1)
    world.note("revoke", attachment="9.9", epoch="1.0", subscription=1, seq=1, memory_id="k")
    assert world.now_result("whoami")["display_name"] == "Sam"


def test_a_new_root_gives_back_what_the_old_one_and_its_children_have_handed_off(make):
    world = make(claude_session="S").begin().greet("claude-code")
    world.answers["delivered"] = None
    child = bound(world, "t1", "S", agent_id="a7")
    world.call("whoami", child)
    world.deliver("one", attachment="1.2")
    world.call("recv", child)
    world.call("whoami", bound(world, "t2", "T"))
    methods = [method for method, _ in world.requests if method in ("delivered", "release")]
    assert methods == ["delivered", "release", "release"]


# sending


def test_a_message_has_one_id_for_all_its_tries(world):
    world.answers["send"] = Recovering("not yet")
    identifier = world.call("send", channel="general", content="x")
    world.pass_time(5)
    world.lose()
    world.pass_time(5)
    assert world.result(identifier) is None
    ids = {params["message_id"] for params in world.asked("send")}
    assert len(ids) == 1
    assert len(world.asked("send")) > 5
    del world.answers["send"]
    world.answers["send"] = {"message_id": "m", "seq": 1, "sent_at": "t", "duplicate": True}
    world.pass_time(2)
    assert world.result(identifier)["duplicate"] is True


def test_an_id_of_the_callers_is_used(world):
    assert world.now_result("send", channel="g", content="", message_id="mine") == {
        "message_id": "mine",
        "seq": 1,
        "sent_at": "2026-11-30T00:00:00.000Z",
        "duplicate": False,
    }


def test_what_was_sent_is_what_the_agent_gave(world):
    given = {
        "channel": "general",
        "content": "\u2028 \U0001f600 \x00",
        "type": "question",
        "reply_to": "m1",
        "metadata": {"a": 1, "b": None, "c": 1.5, "d": True},
        "references": [{"kind": "windows_path", "value": "C:\\x"}],
    }
    world.now_result("send", **given)
    (params,) = world.asked("send")
    assert {name: params[name] for name in given} == given


def test_retries_end_after_thirty_seconds_and_say_how_to_go_on(world):
    world.answers["send"] = Recovering("not yet")
    identifier = world.call("send", channel="general", content="x")
    world.pass_time(29.5)
    assert world.result(identifier) is None
    world.pass_time(1)
    error = world.result(identifier)["error"]
    assert error["code"] == "recovering"
    assert world.asked("send")[0]["message_id"] in error["message"]
    tries = len(world.asked("send"))
    world.pass_time(60)
    assert len(world.asked("send")) == tries


@pytest.mark.parametrize("error", [NotFound("no"), RateLimited("slowly", retry_after_ms=9)])
def test_a_denial_is_told_at_once_and_not_tried_again(world, error):
    world.answers["send"] = error
    told = world.now_result("send", channel="nope", content="x")["error"]
    assert told["code"] == error.code
    assert told.get("retry_after_ms") == error.retry_after_ms
    assert len(world.asked("send")) == 1


def test_an_answer_lost_with_the_connection_is_asked_for_again(world):
    world.answers["send"] = None
    identifier = world.call("send", channel="general", content="x")
    world.lose()
    world.answers["send"] = {"message_id": "m", "seq": 1, "sent_at": "t", "duplicate": True}
    world.pass_time(1)
    assert world.result(identifier)["duplicate"] is True
    first, second = world.asked("send")
    assert first.pop("attachment") != second.pop("attachment")
    assert first == second


def test_a_stale_attachment_is_made_again_by_itself(world):
    stale = [StaleAttachment("over")]
    answer = {"message_id": "m", "seq": 1, "sent_at": "t", "duplicate": False}
    world.answers["send"] = lambda _: stale.pop() if stale else answer
    identifier = world.call("send", channel="general", content="x")
    world.pass_time(1)
    assert world.result(identifier)["seq"] == 1
    assert len(world.asked("register")) == 2


def test_what_is_tried_again_keeps_its_place_before_what_came_later(world):
    refusals = {"1": 4, "2": 1}
    done = []

    def answer(params):
        content = params["content"]
        if refusals.get(content, 0):
            refusals[content] -= 1
            return Recovering("not yet")
        done.append(content)
        return {"message_id": content, "seq": len(done), "sent_at": "t", "duplicate": False}

    world.answers["send"] = answer
    for number in range(1, 4):
        world.call("send", channel="general", content=str(number))
    world.pass_time(0.01)
    world.call("send", channel="general", content="4")
    for _ in range(100):
        world.pass_time(0.02)
    assert done == ["1", "2", "3", "4"]


def test_what_was_given_up_holds_nobody_up(world):
    world.answers["send"] = Recovering("not yet")
    first = world.call("send", channel="general", content="1")
    world.pass_time(20)
    second = world.call("send", channel="general", content="2")
    world.pass_time(10.5)
    assert world.result(first)["error"]["code"] == "recovering"
    assert world.result(second) is None
    world.answers["send"] = {"message_id": "m", "seq": 1, "sent_at": "t", "duplicate": False}
    world.pass_time(1)
    assert world.result(second)["seq"] == 1


def test_what_changes_nothing_waits_for_no_change(world):
    world.answers["send"] = Recovering("not yet")
    world.call("send", channel="general", content="1")
    world.call("list_channels")
    assert len(world.asked("channel.list")) == 1


def test_sessions_do_not_wait_for_each_other(world):
    child = bound(world, "t1", "T", agent_id="c", agent_type="r")
    world.answers["send"] = lambda params: (
        Recovering("not yet")
        if params["content"] == "1"
        else {"message_id": "m", "seq": 1, "sent_at": "t", "duplicate": False}
    )
    world.call("send", bound(world, "t2", "T"), channel="general", content="1")
    other = world.call("send", child, channel="general", content="2")
    assert world.result(other)["seq"] == 1


def test_calls_are_asked_in_their_order_and_answered_in_any(world):
    world.answers["send"] = None
    first = world.call("send", channel="general", content="1")
    second = world.call("send", channel="general", content="2")
    assert [params["content"] for params in world.asked("send")] == ["1", "2"]
    done = {"message_id": "m", "seq": 2, "sent_at": "t", "duplicate": False}
    world.answer(world.held[1][0], done)
    assert world.result(first) is None
    assert world.result(second) == done


def test_a_bad_argument_reaches_nobody(world):
    result = world.now_result("send", channel="general", content=5)
    assert result["error"]["code"] == "invalid_argument"
    assert world.asked("send") == []


# receiving


def test_a_message_counts_as_delivered_when_its_last_byte_is_out(world):
    world.deliver("one", "two")
    assert world.asked("delivered") == []
    world.blocked = True
    identifier = world.call("recv")
    assert world.asked("delivered") == []
    world.write_all()
    assert contents(world.result(identifier)) == ["one", "two"]
    (report,) = world.asked("delivered")
    assert report == {"attachment": "1.1", "epoch": "1.0", "positions": [[1, 2]]}


def test_a_broken_stdout_delivers_nothing_and_ends_the_adapter(world):
    world.deliver("one")
    world.blocked = True
    world.call("recv")
    world.event(StdoutBroken())
    assert world.asked("delivered") == []
    assert world.exit_code == 0


def test_a_call_cancelled_before_its_first_byte_is_no_delivery(world):
    world.deliver("one", "two")
    world.blocked = True
    identifier = world.call("recv", max_messages=1)
    world.feed("notifications/cancelled", requestId=identifier)
    world.blocked = False
    world.write_all()
    assert world.result(identifier) is None
    assert world.asked("delivered") == []
    assert contents(world.now_result("recv")) == ["one", "two"]


def test_a_call_cancelled_in_the_same_breath_is_no_delivery(world):
    world.deliver("one")
    call = json.dumps(
        {"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "recv"}}
    )
    cancel = json.dumps(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}}
    )
    world.event(StdinData(f"{call}\n{cancel}\n".encode()))
    assert world.asked("delivered") == []
    assert contents(world.now_result("recv")) == ["one"]


def test_a_recv_right_after_a_cancelled_one_does_not_overtake_its_messages(world):
    world.deliver("one", "two")
    world.blocked = True
    cancelled = world.call("recv", max_messages=1)
    cancel = json.dumps(
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": cancelled},
        }
    )
    again = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": "again",
            "method": "tools/call",
            "params": {"name": "recv", "arguments": {"max_messages": 1}},
        }
    )
    world.event(StdinData(f"{cancel}\n{again}\n".encode()))
    world.blocked = False
    world.write_all()
    assert world.result(cancelled) is None
    assert contents(world.result("again")) == ["one"]
    assert contents(world.now_result("recv")) == ["two"]


def test_a_cancellation_after_the_result_is_nothing(world):
    world.deliver("one")
    identifier = world.call("recv")
    world.feed("notifications/cancelled", requestId=identifier)
    assert contents(world.result(identifier)) == ["one"]
    assert world.now_result("recv") == NOTHING


def test_a_waiting_call_that_is_cancelled_takes_nothing(world):
    identifier = world.call("recv", wait_seconds=20)
    world.feed("notifications/cancelled", requestId=identifier)
    world.deliver("one")
    assert world.result(identifier) is None
    assert contents(world.now_result("recv")) == ["one"]


def test_a_waiting_recv_returns_with_the_first_message(world):
    identifier = world.call("recv", wait_seconds=20)
    world.pass_time(3)
    world.feed("ping", "p")
    assert world.lines[-1] == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert world.result(identifier) is None
    world.deliver("one")
    assert contents(world.result(identifier)) == ["one"]


def test_a_recv_whose_time_is_over_returns_nothing(world):
    identifier = world.call("recv", wait_seconds=0.25)
    world.pass_time(0.2)
    assert world.result(identifier) is None
    world.pass_time(0.1)
    assert world.result(identifier) == NOTHING


def test_a_recv_that_finds_nothing_asks_whether_something_is_on_its_way(world):
    world.answers["heartbeat"] = lambda _: {"attachments": world.attachments, "lagging": True}
    identifier = world.call("recv")
    world.pass_time(0.1)
    assert world.result(identifier) is None
    world.deliver("backlog")
    assert contents(world.result(identifier)) == ["backlog"]


def test_a_recv_waits_until_what_was_accepted_before_it_is_visible(world):
    seen = {"attachments": world.attachments, "lagging": False, "accepted": 7, "visible": 6}
    world.answers["heartbeat"] = lambda _: seen
    identifier = world.call("recv")
    world.pass_time(0.1)
    seen |= {"accepted": 9, "visible": 7}
    assert world.result(identifier) is None
    world.pass_time(0.1)
    assert world.result(identifier) == NOTHING


def test_a_recv_does_not_ask_for_ever(world):
    world.answers["heartbeat"] = lambda _: {"attachments": world.attachments, "lagging": True}
    identifier = world.call("recv")
    world.pass_time(2.5)
    assert world.result(identifier) == NOTHING


def test_a_recv_on_a_recovering_bus_says_so(world):
    world.answers["heartbeat"] = lambda _: {
        "attachments": world.attachments,
        "state": "recovering",
    }
    world.pass_time(1)
    assert world.now_result("recv")["error"]["code"] == "recovering"
    identifier = world.call("recv", wait_seconds=5)
    world.deliver("one")
    assert contents(world.result(identifier)) == ["one"]


def test_more_tells_that_more_is_buffered(world):
    world.deliver("1", "2", "3")
    first = world.now_result("recv", max_messages=2)
    assert (contents(first), first["more"]) == (["1", "2"], True)
    second = world.now_result("recv", max_messages=2)
    assert (contents(second), second["more"]) == (["3"], False)


def test_two_waiting_calls_share_what_comes(world):
    first, second = (world.call("recv", wait_seconds=9, max_messages=1) for _ in range(2))
    world.deliver("1", "2")
    assert contents(world.result(first)) == ["1"]
    assert contents(world.result(second)) == ["2"]


def test_a_recv_renews_the_subscriptions_at_most_once_a_minute(world):
    world.now_result("recv")
    world.now_result("recv")
    assert len(world.asked("renew")) == 1
    world.pass_time(61)
    world.now_result("recv")
    assert len(world.asked("renew")) == 2


def test_a_recv_after_a_sleep_of_the_machine_renews_however_short_it_was(world):
    world.now_result("recv")
    world.suspend(71 * 3600.0)
    world.now_result("recv")
    world.now_result("recv")
    assert len(world.asked("renew")) == 2
    world.suspend(-71 * 3600.0)
    world.now_result("recv")
    assert len(world.asked("renew")) == 2


def test_a_renewal_that_was_lost_with_the_connection_is_made_with_the_next_claim(world):
    world.answers["renew"] = None
    world.now_result("recv")
    world.answer_as_usual()
    world.lose()
    world.pass_time(1)
    assert [each["attachment"] for each in world.asked("renew")] == ["1.1", "1.2"]
    world.pass_time(30)
    world.lose()
    world.pass_time(1)
    assert len(world.asked("renew")) == 2


def test_a_renewal_that_could_not_be_stored_is_made_again(world):
    failing = [Unavailable("the writer restarts"), Unavailable("it still does")]
    usual = world.answers["renew"]
    world.answers["renew"] = lambda _: failing.pop() if failing else usual
    world.now_result("recv")
    world.pass_time(5)
    assert len(world.asked("renew")) == 3


def test_a_new_epoch_repeats_the_reports_that_were_not_confirmed(world):
    world.answers["delivered"] = None
    world.deliver("1", "2")
    world.now_result("recv", max_messages=1)
    world.epoch = "1.1"
    world.answers["delivered"] = {}
    world.note("epoch", epoch="1.1")
    world.deliver("1", "2")
    assert [each["epoch"] for each in world.asked("delivered")] == ["1.0", "1.1"]
    assert contents(world.now_result("recv")) == ["2"]


@pytest.mark.parametrize("epoch", ["1.0", "2.0"])
def test_reports_survive_a_lost_connection(world, epoch):
    world.answers["delivered"] = None
    world.deliver("1", "2", "3")
    world.now_result("recv", max_messages=2)
    world.answers["delivered"] = {}
    world.epoch = epoch
    world.lose()
    world.pass_time(1)
    assert len(world.asked("delivered")) == 2
    assert world.asked("delivered")[-1] == {
        "attachment": world.attachments[0],
        "epoch": epoch,
        "positions": [[1, 2]],
    }
    world.deliver("1", "2", "3")
    assert contents(world.now_result("recv")) == ["3"]


def test_a_report_that_could_not_be_committed_is_made_again(world):
    failing = [Unavailable("the writer restarts")]
    world.answers["delivered"] = lambda _: failing.pop() if failing else {}
    world.deliver("1")
    world.now_result("recv")
    world.pass_time(2)
    assert [each["positions"] for each in world.asked("delivered")] == [[[1, 1]], [[1, 1]]]


def test_a_report_of_a_stale_attachment_is_made_again_by_the_next_one(world):
    stale = [StaleAttachment("over")]
    world.answers["delivered"] = lambda _: stale.pop() if stale else {}
    world.deliver("1")
    world.now_result("recv")
    world.pass_time(1)
    assert [each["attachment"] for each in world.asked("delivered")] == ["1.1", "1.2"]


def forget_at_reports(world):
    world.answers["delivered"] = StaleAttachment("over")
    world.deliver("1")
    world.now_result("recv")


def forget_at_calls(world):
    world.answers["send"] = StaleAttachment("over")
    world.call("send", channel="general", content="x")


def forget_at_heartbeats(world):
    world.answers["heartbeat"] = {"attachments": [], "lagging": False}
    world.call("recv", wait_seconds=60)


@pytest.mark.parametrize("forget", [forget_at_reports, forget_at_calls, forget_at_heartbeats])
def test_a_daemon_that_forgets_every_claim_is_asked_for_others_at_a_bounded_rate(world, forget):
    forget(world)
    world.pass_time(20)
    assert 2 <= len(world.asked("register")) <= 20
    world.answer_as_usual()
    world.pass_time(20)
    asked = len(world.asked("register"))
    over = [StaleAttachment("over")]
    world.answers["delivered"] = lambda _: over.pop() if over else {}
    world.deliver("2", first=2)
    world.now_result("recv")
    assert len(world.asked("register")) == asked + 1


def test_a_new_bus_instance_knows_nothing_of_the_old_one(world):
    world.answers["delivered"] = None
    world.deliver("1", "2")
    world.now_result("recv")
    world.answers["hello"] = {"protocol": 1, "version": "0", "instance": "new", "state": "ready"}
    world.lose()
    world.pass_time(1)
    assert len(world.asked("delivered")) == 1
    world.deliver("new 1")
    assert contents(world.now_result("recv")) == ["new 1"]


@pytest.mark.parametrize(
    ("client", "kib"), [("codex-mcp-client", 8), ("claude-code", 44), ("opencode", 28)]
)
def test_results_have_the_size_that_the_client_shows(make, client, kib):
    world = make(session="S").begin().greet(client)
    world.deliver(*["x" * 1000] * 60)
    identifier = world.call("recv")
    size = len(json.dumps(world.result(identifier), separators=(",", ":")))
    assert kib * 1024 - 1400 < size <= kib * 1024
    assert world.result(identifier)["more"]


def test_a_call_may_ask_for_more_and_the_settings_for_less(make):
    world = make(Settings(result_default_kib=4)).begin().greet()
    world.deliver(*["x" * 1000] * 60)
    assert len(world.now_result("recv")["messages"]) == 3
    assert len(world.now_result("recv", max_kib=64)["messages"]) == 54


def test_a_message_larger_than_the_ceiling_comes_alone_and_visibly_cut(world):
    world.deliver("small", "x" * 50_000, "after")
    assert contents(world.now_result("recv")) == ["small"]
    (cut,) = world.now_result("recv")["messages"]
    assert (cut["content_truncated"], cut["content_length"]) == (True, 50_000)
    assert 27_000 < len(cut["content"]) < 28 * 1024
    assert contents(world.now_result("recv")) == ["after"]


# the end


def test_an_idle_adapter_ends_with_its_stdin(world):
    world.event(StdinClosed())
    assert world.exit_code == 0


def test_an_adapter_that_was_never_greeted_ends_with_its_stdin(make):
    world = make().begin()
    world.event(StdinClosed())
    assert world.exit_code == 0


def test_calls_under_way_may_still_be_answered_for_a_second(world):
    world.answers["send"] = None
    identifier = world.call("send", channel="general", content="x")
    world.event(StdinClosed())
    assert world.exit_code is None
    world.answer(
        world.held[0][0], {"message_id": "m", "seq": 1, "sent_at": "t", "duplicate": False}
    )
    assert world.result(identifier)["seq"] == 1
    assert world.exit_code == 0


def test_an_answer_that_does_not_come_keeps_nobody_alive(world):
    world.answers["send"] = None
    world.call("send", channel="general", content="x")
    world.event(StdinClosed())
    world.pass_time(1.1)
    assert world.exit_code == 0


def test_nothing_is_handed_to_a_harness_that_has_ended_its_side(world):
    identifier = world.call("recv", wait_seconds=50)
    world.event(StdinClosed())
    assert world.result(identifier) == NOTHING
    world.deliver("late")
    assert world.asked("delivered") == []


@pytest.mark.parametrize("reason", ["signal", "orphan"])
def test_a_signal_ends_the_adapter_whatever_it_does(world, reason):
    world.answers["send"] = None
    world.call("send", channel="general", content="x")
    world.call("recv", wait_seconds=50)
    world.event(Asked(reason))
    assert world.exit_code == 0


def test_an_idle_adapter_sleeps_from_heartbeat_to_heartbeat(world):
    world.pass_time(0)
    assert world.wake_at == pytest.approx(world.now + 10, abs=0.1)


# what a person has to mend


def test_what_a_person_has_to_mend_is_told_once_on_stderr_too(make):
    world = make()
    world.running = False
    world.start_error = RedisMissing("install a Redis")
    world.begin().greet()
    world.now_result("whoami")
    world.call("whoami")
    world.pass_time(60)
    assert world.complaints == ["redis_missing: install a Redis"]


def test_what_passes_by_itself_is_no_complaint(make):
    world = make()
    world.running = False
    world.start_error = Unavailable("it died")
    world.begin().greet()
    world.pass_time(5)
    assert world.complaints == []


def test_a_project_file_that_cannot_be_used_is_told_before_anybody_calls(make):
    world = make(project=Project("/r", problem=ConfigInvalid("mend /r/.agentbus.json"))).begin()
    assert world.complaints == ["config_invalid: mend /r/.agentbus.json"]


def test_the_end_of_stdin_is_a_failure_where_the_bus_could_never_be_reached(make):
    world = make()
    world.running = False
    world.begin()
    world.event(DaemonUnreachable(ConfigInvalid("mend it")))
    world.event(StdinClosed())
    assert (world.complaints, world.exit_code) == (["config_invalid: mend it"], 1)


# another handshake on the same pipe


def test_another_name_after_the_first_call_moves_no_session(world):
    assert world.now_result("whoami")["application"] == "tests"
    world.greet("another")
    assert world.lines[-1]["result"]["serverInfo"]["name"] == "agentbus"
    assert world.now_result("whoami")["application"] == "tests"
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "a third", "version": "1"},
    }
    identifier = world.call("whoami", meta)
    assert world.result(identifier)["application"] == "tests"
    assert len(world.asked("register")) == 1
    assert world.asked("release") == []


def test_a_recv_that_waits_outlives_another_handshake(world):
    identifier = world.call("recv", wait_seconds=60)
    world.greet("another")
    world.call("whoami")
    assert world.result(identifier) is None
    world.deliver("hello")
    assert contents(world.result(identifier)) == ["hello"]


def test_before_any_call_the_last_name_told_counts(make):
    world = make().begin().greet("a probe").greet("opencode")
    assert world.now_result("whoami")["application"] == "opencode"


# a process that was stopped for a while


def test_a_recv_that_everything_slept_through_waits_for_the_daemon_instead_of_failing(world):
    identifier = world.call("recv", wait_seconds=20)
    world.answers["heartbeat"] = None
    world.oversleep(40)
    assert world.result(identifier) is None
    number, *_ = world.held[-1]
    world.answer(number, {"attachments": world.attachments, "lagging": False})
    assert world.result(identifier) == NOTHING


@pytest.mark.parametrize("slept", [3, 29, 31, 40, 4000])
@pytest.mark.parametrize("waits", [0, 5, 60])
def test_what_came_meanwhile_is_returned_however_long_it_slept(world, slept, waits):
    identifier = world.call("recv", wait_seconds=waits) if waits else None
    world.oversleep(slept)
    identifier = identifier or world.call("recv")
    if world.result(identifier) is None:
        world.deliver("hello")
        world.pass_time(1)
    result = world.result(identifier)
    assert "error" not in result
    assert contents(result) in (["hello"], [])


def test_the_daemon_is_not_given_up_for_our_own_sleep(world):
    world.oversleep(40)
    assert world.connects == 1
    assert world.connected
    assert world.asked("heartbeat")
    world.answers["heartbeat"] = None
    world.pass_time(31)
    assert world.connects == 2


@pytest.mark.parametrize("first", [StdinData(b"\n"), DaemonData(b"\n")])
def test_it_makes_no_difference_what_happens_first_after_a_sleep(world, first):
    world.answers["send"] = None
    sending = world.call("send", channel="general", content="x")
    waiting = world.call("recv", wait_seconds=20)
    world.oversleep(40, first)
    assert (world.result(sending), world.result(waiting)) == (None, NOTHING)
    assert world.connects == 1


def test_a_claim_of_another_is_given_its_whole_time_after_a_sleep(world):
    world.lose()
    world.answers["register"] = SessionAlreadyConnected("another has it")
    world.pass_time(1)
    identifier = world.call("whoami")
    world.pass_time(1)
    world.oversleep(40)
    assert world.result(identifier) is None
    world.pass_time(60)
    assert world.result(identifier)["error"]["code"] == "session_already_connected"


def test_a_wake_that_is_a_little_late_is_no_sleep(world):
    world.answers["send"] = None
    identifier = world.call("send", channel="general", content="x")
    for _ in range(40):
        assert world.result(identifier) is None or world.now > 129
        world.now += 0.9
        world.event(Woke())
    assert world.result(identifier)["error"]["code"] == "unavailable"
