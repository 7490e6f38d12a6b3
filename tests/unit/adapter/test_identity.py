"""Who is calling, by what the harness programs were seen to supply."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from agentbus.adapter.identity import (
    PROJECT_FILE_BYTES,
    Caller,
    Given,
    Identity,
    SessionKey,
    application_of,
    find_project,
)
from agentbus.errors import InvalidArgument

NOW = 100.0


def identity(**given: Any) -> Identity:
    return Identity(Given(fallback="random", **given))


def codex(thread: str, root: str, **more: Any) -> dict[str, Any]:
    turn = {"session_id": root, "thread_id": thread} | more
    return {"threadId": thread, "sessionId": root, "x-codex-turn-metadata": turn}


def test_claude_code_is_known_by_its_environment():
    caller = identity(claude_session="C").caller("claude-code", {}, NOW)
    assert caller == Caller(SessionKey("claude-code", "C"))


def test_another_program_does_not_take_claudes_session_for_its_own():
    caller = identity(claude_session="C").caller("opencode", {}, NOW)
    assert caller.key == SessionKey("opencode", "random")


def test_what_opencodes_plugin_adds_is_taken_out_and_believed():
    who = identity()
    added = {"channel": "c", "agentbus_caller": {"session": "r", "child": "s", "role": "general"}}
    given, said = who.in_band("opencode", added)
    assert given == {"channel": "c"}
    caller = who.caller("opencode", {}, NOW, said)
    assert caller == Caller(SessionKey("opencode", "r", "s"), "general")
    given, said = who.in_band("opencode", {"agentbus_caller": {"session": "r"}})
    assert who.caller("opencode", {}, NOW, said).key == SessionKey("opencode", "r")
    assert who.caller("opencode", {}, NOW).key == SessionKey("opencode", "r"), "a resource is read"


def test_without_the_plugin_opencode_is_a_session_for_as_long_as_it_runs():
    who = identity()
    assert who.in_band("opencode", {"channel": "c"}) == ({"channel": "c"}, None)
    assert who.caller("opencode", {}, NOW).key == SessionKey("opencode", "random")


@pytest.mark.parametrize("added", [None, 3, [], {}, {"session": 3}, {"session": ""}])
def test_what_is_added_and_says_nothing_is_taken_out_all_the_same(added):
    assert identity().in_band("opencode", {"agentbus_caller": added}) == ({}, None)


def test_nobody_else_may_say_who_calls():
    given = {"agentbus_caller": {"session": "r"}}
    assert identity().in_band("codex-mcp-client", given) == (given, None)
    assert identity(application="tests").in_band("opencode", given) == (given, None)


def test_gemini_is_in_the_conversation_that_its_hook_left_last():
    left: list[str | None] = [None]
    who = Identity(Given(fallback="random"), lambda: left[0])
    client = "gemini-cli-mcp-client"
    assert who.expect(client) == Caller(SessionKey("gemini-cli", "random"))
    left[0] = "G"
    assert who.caller(client, {}, NOW).key == SessionKey("gemini-cli", "G")
    left[0] = "after a clear"
    assert who.caller(client, {}, NOW).key == SessionKey("gemini-cli", "after a clear")


def test_what_a_hook_of_gemini_left_is_nobody_elses():
    who = Identity(Given(fallback="random"), lambda: "G")
    assert who.caller("opencode", {}, NOW).key == SessionKey("opencode", "random")
    fixed = Identity(Given(fallback="random", session="S"), lambda: "G")
    assert fixed.caller("gemini-cli-mcp-client", {}, NOW).key == SessionKey("gemini-cli", "S")


def test_codex_names_thread_and_root_in_each_call():
    who = identity()
    assert who.caller("codex-mcp-client", codex("r", "r"), NOW).key == SessionKey("codex", "r")
    caller = who.caller("codex-mcp-client", codex("c", "r", subagent_kind="review"), NOW)
    assert caller == Caller(SessionKey("codex", "r", "c"), "review")


@pytest.mark.parametrize(
    ("more", "role"),
    [
        ({"subagent_kind": "thread_spawn"}, "subagent"),
        ({"subagent_kind": "collab_spawn"}, "subagent"),
        ({"subagent_kind": "review"}, "review"),
        ({"subagent_kind": "thread_spawn", "agent_name": "/root/docs/policy"}, "policy"),
        ({"subagent_kind": "thread_spawn", "agent_name": "/"}, "subagent"),
        ({"subagent_kind": "thread_spawn", "agent_nickname": "Bohr"}, "Bohr"),
        ({"agent_role": "explorer", "agent_name": "/root/a", "agent_nickname": "Bohr"}, "explorer"),
        ({"agent_role": "", "agent_name": 5, "subagent_kind": ["review"]}, "subagent"),
    ],
)
def test_a_subagent_of_codex_is_called_after_what_it_is_for(more, role):
    meta = codex("c", "r", thread_source="subagent", **more)
    caller = identity().caller("codex-mcp-client", meta, NOW)
    assert caller == Caller(SessionKey("codex", "r", "c"), role)


def test_the_turns_metadata_may_be_text_and_is_enough():
    turn = json.dumps({"session_id": "r", "thread_id": "c", "thread_source": "subagent"})
    caller = identity().caller("codex-mcp-client", {"x-codex-turn-metadata": turn}, NOW)
    assert caller == Caller(SessionKey("codex", "r", "c"), "subagent")


@pytest.mark.parametrize("turn", ["no json", "[1]", 5, None, [], {"session_id": 5}])
def test_metadata_of_another_shape_is_nothing(turn):
    caller = identity().caller("codex-mcp-client", {"x-codex-turn-metadata": turn}, NOW)
    assert caller.key == SessionKey("codex", "random")


def test_a_call_without_a_binding_belongs_to_the_last_bound_root():
    who = identity(claude_session="C")
    who.caller("codex-mcp-client", codex("c", "r"), NOW)
    assert who.caller("codex-mcp-client", {}, NOW).key == SessionKey("codex", "r")


@pytest.mark.parametrize("root", [None, "c"])
def test_a_subagent_that_names_its_parent_alone_is_its_parents(root):
    turn = {"subagent_kind": "review", "parent_thread_id": "p", "thread_source": "subagent"}
    meta = {"threadId": "c", "x-codex-turn-metadata": turn}
    if root is not None:
        meta["sessionId"] = root
    caller = identity().caller("codex-mcp-client", meta, NOW)
    assert caller == Caller(SessionKey("codex", "p", "c"), "review")


def test_a_subagents_subagent_belongs_to_the_same_root():
    meta = codex("c2", "r", parent_thread_id="c1", subagent_kind="review")
    assert identity().caller("codex-mcp-client", meta, NOW).key == SessionKey("codex", "r", "c2")


def test_a_forked_thread_is_a_root_of_its_own():
    meta = codex("f", "f", parent_thread_id="r", thread_source="user")
    assert identity().caller("codex-mcp-client", meta, NOW).key == SessionKey("codex", "f")


# bound by a hook


def bind(who: Identity, tool_use: str, session: str = "S", **more: str) -> None:
    who.bind({"session_id": session, "tool_use_id": tool_use} | more, NOW)


def claude(who: Identity, tool_use: str | None = None, now: float = NOW) -> Caller:
    meta = {} if tool_use is None else {"claudecode/toolUseId": tool_use}
    return who.caller("claude-code", meta, now)


def test_a_bound_call_belongs_to_who_the_hook_named_and_not_to_the_environment():
    who = identity(claude_session="stale")
    bind(who, "t1")
    bind(who, "t2", agent_id="a7", agent_type="general-purpose")
    child = Caller(SessionKey("claude-code", "S", "a7"), "general-purpose")
    assert claude(who, "t2") == child
    assert claude(who, "t1").key == SessionKey("claude-code", "S")
    assert claude(who, "t2") == child


@pytest.mark.parametrize("tool_use", [None, "unknown"])
def test_a_call_without_a_binding_belongs_to_the_last_bound_root_and_never_to_a_child(tool_use):
    who = identity(claude_session="stale")
    assert claude(who, tool_use).key.native == "stale"
    bind(who, "t1", "before the clear")
    bind(who, "t2", "after the clear", agent_id="a7")
    assert claude(who, tool_use).key == SessionKey("claude-code", "after the clear")


def test_the_last_bound_root_is_the_one_of_the_last_call_too():
    who = identity()
    bind(who, "t1", "one")
    bind(who, "t2", "two")
    claude(who, "t1")
    assert claude(who).key.native == "one"


def test_what_a_hook_could_not_fill_in_is_nothing():
    who = identity()
    bind(who, "t1", agent_id="", agent_type="")
    bind(who, "t2", agent_id="${agent_id}", agent_type="${agent_type}")
    assert claude(who, "t1") == claude(who, "t2") == Caller(SessionKey("claude-code", "S"))


def test_a_bound_call_of_a_given_root_may_show_a_subagent_of_it():
    who = identity(application="x", session="P")
    bind(who, "t1", agent_id="a7", agent_type="review")
    bind(who, "t2")
    assert claude(who, "t1") == Caller(SessionKey("x", "P", "a7"), "review")
    assert claude(who, "t2").key == SessionKey("x", "P")


def test_an_adapter_that_was_started_for_a_subagent_is_that_one_whoever_calls():
    who = identity(application="x", session="P", child="c", role="tests")
    bind(who, "t1", agent_id="a7", agent_type="review")
    given = Caller(SessionKey("x", "P", "c"), "tests")
    assert who.expect("claude-code") == claude(who, "t1") == claude(who) == given


def test_a_hook_that_comes_before_any_name_is_joined_with_the_client_that_calls():
    who = identity()
    bind(who, "t1")
    assert claude(who, "t1").key == SessionKey("claude-code", "S")


@pytest.mark.parametrize("name", ["x" * 129, "a\nb"])
def test_what_a_hook_names_must_be_names(name):
    with pytest.raises(InvalidArgument):
        bind(identity(), "t", name)
    with pytest.raises(InvalidArgument):
        bind(identity(), "t", agent_id=name)


def test_codex_is_not_expected_before_it_calls():
    assert identity().expect("codex-mcp-client") is None
    assert identity().expect("claude-code") is not None


def test_what_was_given_at_start_is_the_root_and_calls_may_still_show_subagents():
    who = identity(application="codex", session="S")
    assert who.caller("anything", {}, NOW).key == SessionKey("codex", "S")
    assert who.caller("anything", codex("r", "r"), NOW).key == SessionKey("codex", "S")
    assert who.caller("anything", codex("c", "r"), NOW).key == SessionKey("codex", "S", "c")


def test_a_child_given_at_start_is_the_caller():
    who = identity(application="x", session="P", child="K", role="tests")
    assert who.caller("y", {}, NOW) == Caller(SessionKey("x", "P", "K"), "tests")


def test_a_request_without_a_client_belongs_to_the_client_seen_last():
    who = identity()
    who.expect("opencode")
    assert who.caller(None, {}, NOW).key == SessionKey("opencode", "random")


@pytest.mark.parametrize(
    ("client", "application"),
    [
        (None, "mcp"),
        ("", "mcp"),
        ("\n\x00", "mcp"),
        ("codex-mcp-client", "codex"),
        ("gemini-cli-mcp-client", "gemini-cli"),
        ("my client", "my client"),
        ("é" * 100, "é" * 64),
    ],
)
def test_an_application_is_a_name_whatever_the_client_says(client, application):
    assert application_of(client) == application


@pytest.mark.parametrize("name", ["x" * 129, "a\nb"])
def test_a_session_id_that_is_no_name_is_refused(name):
    with pytest.raises(InvalidArgument):
        identity().caller("codex-mcp-client", codex(name, name), NOW)


def test_a_project_is_the_repository_around_the_directory(tmp_path):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "a" / "b").mkdir(parents=True)
    project = find_project(str(tmp_path / "repo" / "a" / "b"))
    assert (project.root, project.hint) == (str(tmp_path / "repo"), "repo")
    assert (project.agent, project.channels, project.problem) == (None, None, None)


def test_a_worktree_has_a_file_for_its_git_directory(tmp_path):
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    assert find_project(str(tmp_path)).hint == tmp_path.name


def test_without_a_repository_the_directory_is_the_root_and_there_is_no_hint(tmp_path):
    project = find_project(str(tmp_path))
    assert (project.root, project.hint) == (str(tmp_path), None)


def test_a_link_to_a_repository_is_that_repository(tmp_path):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "repo")
    assert find_project(str(tmp_path / "link")).root == str(tmp_path / "repo")


def test_the_project_file_names_agent_and_channels(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".agentbus.json").write_text('{"agent": "Ann", "channels": ["general", "x"]}')
    project = find_project(str(tmp_path))
    assert (project.agent, project.channels) == ("Ann", ["general", "x"])


@pytest.mark.parametrize("text", ["{", '{"agent": 5}', '{"agnet": "x"}', "[]", "\xff"])
def test_a_project_file_that_cannot_be_used_is_a_problem_that_names_it(tmp_path, text):
    (tmp_path / ".agentbus.json").write_bytes(text.encode("latin-1"))
    problem = find_project(str(tmp_path)).problem
    assert problem is not None
    assert str(tmp_path / ".agentbus.json") in problem.message


@pytest.mark.timeout(10)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_a_project_file_that_is_no_regular_file_is_a_problem(tmp_path, make):
    make(tmp_path / ".agentbus.json")
    problem = find_project(str(tmp_path)).problem
    assert problem is not None
    assert str(tmp_path / ".agentbus.json") in problem.message


def test_a_project_file_is_read_up_to_its_greatest_size(tmp_path):
    text = '{"agent": "Ann"}'.ljust(PROJECT_FILE_BYTES)
    (tmp_path / ".agentbus.json").write_text(text)
    assert find_project(str(tmp_path)).agent == "Ann"
    (tmp_path / ".agentbus.json").write_text(text + " ")
    problem = find_project(str(tmp_path)).problem
    assert problem is not None
    assert "64 KiB" in problem.message


@pytest.mark.parametrize("content", ["{}", "{"])
def test_a_repository_whose_name_is_not_utf8_has_a_root_and_a_hint_that_can_be_sent(
    tmp_path, content
):
    repository = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.makedirs(repository + b"/.git")
    except OSError:
        pytest.skip("the file system takes only UTF-8")
    with open(repository + b"/.agentbus.json", "w") as file:
        file.write(content)
    project = find_project(os.fsdecode(repository))
    assert (project.root, project.hint) == (f"{tmp_path}/caf\\xe9", "caf\\xe9")
    if project.problem is not None:
        assert f"{tmp_path}/caf\\xe9" in project.problem.message
        project.problem.message.encode()
    assert (project.problem is None) == (content == "{}")
