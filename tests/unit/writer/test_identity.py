"""Agents, names and claims."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agentbus.model.ids import AttachmentId, Seq
from agentbus.model.names import FRIENDLY
from agentbus.wire.links import (
    GATEWAY_WRITER,
    ChannelCreate,
    DiscoverAsk,
    Done,
    Refused,
    Registered,
    Release,
    Report,
)
from tests.support.writer_world import World


def code(answer: Any) -> str:
    assert isinstance(answer, Refused), answer
    return answer.failure.code


def release(world: World, attachment: str) -> None:
    answer = world.ask(Release(world.ref(), AttachmentId(attachment)))
    assert [type(done) for done in answer] == [Done]


def test_sessions_of_one_agent_get_the_lowest_free_suffix(world: World) -> None:
    names = [world.register(f"n{n}", agent="Sam").display_name for n in range(3)]
    assert names == ["Sam", "Sam2", "Sam3"]


def test_the_suffix_is_unique_across_applications(world: World) -> None:
    world.register("n1", agent="Sam", application="codex")
    assert world.register("n1", agent="Sam", application="claude-code").display_name == "Sam2"


def test_an_attached_session_keeps_its_name_when_others_leave(world: World) -> None:
    first = world.register("n1", agent="Sam")
    second = world.register("n2", agent="Sam")
    release(world, first.attachment)
    answer = world.ask(world.registration("n2", agent="Sam", attachment=second.attachment))[0]
    assert answer.display_name == "Sam2"
    assert world.register("n3", agent="Sam").display_name == "Sam"


def test_after_all_left_the_next_is_sam(world: World) -> None:
    for attachment in [world.register(f"n{n}", agent="Sam").attachment for n in range(3)]:
        release(world, attachment)
    assert world.register("fresh", agent="Sam").display_name == "Sam"


def test_a_resumed_session_gets_its_old_name_if_it_is_free(world: World) -> None:
    first = world.register("n1", agent="Sam")
    second = world.register("n2", agent="Sam")
    release(world, first.attachment)
    release(world, second.attachment)
    assert world.register("n2", agent="Sam").display_name == "Sam2"
    assert world.register("n3", agent="Sam").display_name == "Sam"
    assert world.register("n1", agent="Sam").display_name == "Sam3"


def test_a_child_is_named_for_its_parents_agent_and_its_role(world: World) -> None:
    world.register("root", agent="Sam")
    child = world.register("root", agent="Sam", child="c1", parent="root", role="implement804")
    assert child.display_name == "Sam-implement804"
    assert child.agent == "Sam"
    twin = world.register("root", child="c2", parent="root", role="implement804")
    assert twin.display_name == "Sam-implement804-2"
    assert world.register("root", child="c3", parent="root", role="review").display_name == (
        "Sam-review"
    )


def test_a_child_without_role_or_known_parent_still_gets_a_name(world: World) -> None:
    child = world.register("n1", child="c1", parent="unknown", agent="Eve")
    assert child.display_name == "Eve-helper"


def test_a_child_keeps_its_parents_agent_whatever_else_it_says(world: World) -> None:
    world.register("root", agent="Sam")
    assert world.register("root", agent="Eve", child="c").agent == "Sam"


def test_a_repository_gets_one_friendly_name_and_keeps_it(world: World) -> None:
    first = world.register("n1", repository_root="/a/tmi")
    second = world.register("n2", repository_root="/a/tmi")
    other = world.register("n3", repository_root="/b/tmi")
    assert first.agent in FRIENDLY
    assert second.agent == first.agent
    assert other.agent != first.agent
    world.restart()
    assert world.register("n4", repository_root="/a/tmi").agent == first.agent
    assert world.rows("SELECT count(*) FROM agents") == [(2,)]


def test_sessions_outside_of_repositories_do_not_multiply_agents(world: World) -> None:
    assert len({world.register(f"n{n}").agent for n in range(5)}) == 1


def test_a_resumed_session_stays_who_it_was_unless_told_otherwise(world: World) -> None:
    first = world.register("n1", agent="Sam")
    release(world, first.attachment)
    resumed = world.register("n1", repository_root="/elsewhere")
    assert resumed.agent == "Sam"
    release(world, resumed.attachment)
    renamed = world.register("n1", agent="Eve")
    assert (renamed.agent, renamed.display_name) == ("Eve", "Eve")
    assert renamed.session_id == first.session_id


def test_application_native_and_child_make_the_session(world: World) -> None:
    ids = [
        world.register("n1", application="codex").session_id,
        world.register("n1", application="claude-code").session_id,
        world.register("n2", application="codex").session_id,
        world.register("n1", application="codex", child="c").session_id,
    ]
    assert len(set(ids)) == 4


def test_a_second_live_claim_is_refused_and_the_first_is_untouched(world: World) -> None:
    first = world.register("n1", agent="Sam")
    (answer,) = world.ask(world.registration("n1", agent="Sam"))
    assert code(answer) == "session_already_connected"
    assert world.ask(world.append(first.attachment, "a"))[0].seq == 1
    release(world, first.attachment)
    assert world.register("n1", agent="Sam").resumed


def test_registering_again_under_the_same_attachment_is_the_same_claim(world: World) -> None:
    first = world.register("n1", agent="Sam")
    (again,) = world.ask(world.registration("n1", agent="Sam", attachment=first.attachment))
    assert again == Registered(again.ref, *(getattr(first, f) for f in first.__struct_fields__[1:]))
    (other,) = world.ask(world.registration("n2", agent="Sam", attachment=first.attachment))
    assert code(other) == "invalid_argument"


def test_claims_outlive_the_writer_but_not_the_gateway(world: World) -> None:
    sam = world.register("n1", agent="Sam")
    world.restart()
    assert world.ask(world.append(sam.attachment, "a"))[0].seq == 1
    (again,) = world.ask(world.registration("n1", agent="Sam", attachment=sam.attachment))
    assert (again.display_name, again.resumed) == ("Sam", False)
    before = world.incarnation
    world.replace_gateway()
    assert world.incarnation == before + 1
    assert code(world.ask(world.append(sam.attachment, "b"))[0]) == "stale_attachment"
    resumed = world.register("n1")
    assert (resumed.display_name, resumed.resumed) == ("Sam", True)
    world.time += 1
    world.restart()
    (again,) = world.ask(world.registration("n1", attachment=resumed.attachment))
    assert again.resumed


def test_releasing_what_is_not_held_is_no_error(world: World) -> None:
    release(world, "7.7")


def test_a_claim_released_and_made_again_in_one_turn_is_a_resume(world: World) -> None:
    sam = world.register("n1", agent="Sam")
    done, resumed = world.ask(
        Release(world.ref(), sam.attachment), world.registration("n1", agent="Sam")
    )
    assert isinstance(done, Done)
    assert (resumed.display_name, resumed.resumed) == ("Sam", True)


@pytest.mark.parametrize(
    "fields",
    [
        {"agent": "a\nb"},
        {"agent": ""},
        {"agent": "x" * 129},
        {"application": "\x1b[31m"},
        {"native": ""},
        {"child": "\u2028"},
        {"child": "c", "parent": "a\nb"},
        {"agent": "a\u202eb"},
        {"channels": ["ok", "not\tok"]},
    ],
)
def test_names_that_could_imitate_something_are_refused_and_leave_nothing(
    world: World, fields: dict[str, Any]
) -> None:
    (answer,) = world.ask(world.registration(**fields))
    assert code(answer) == "invalid_argument"
    assert world.rows("SELECT count(*) FROM sessions") == [(0,)]
    assert world.rows("SELECT count(*) FROM channels") == [(2,)]


def test_a_thousand_restarts_of_a_conversation_are_one_agent_and_one_session(world: World) -> None:
    for _ in range(1000):
        world.tell(GATEWAY_WRITER, world.registration("n1", repository_root="/a/tmi"))
        *_, registered = world.ask()
        world.tell(GATEWAY_WRITER, Release(world.ref(), registered.attachment))
    world.ask()
    assert world.rows("SELECT count(*) FROM agents") == [(1,)]
    assert world.rows("SELECT count(*), count(DISTINCT display_name) FROM sessions") == [(1, 1)]
    assert world.rows("SELECT count(*) FROM subscriptions") == [(2,)]


def test_a_thousand_fresh_conversations_are_one_agent_with_one_name(world: World) -> None:
    names = set()
    for number in range(1000):
        world.tell(GATEWAY_WRITER, world.registration(f"n{number}", repository_root="/a/tmi"))
        *_, registered = world.ask()
        names.add((registered.agent, registered.display_name))
        world.tell(GATEWAY_WRITER, Release(world.ref(), registered.attachment))
    world.ask()
    assert len(names) == 1
    assert world.rows("SELECT count(*) FROM agents") == [(1,)]
    asking = world.register("last", repository_root="/a/tmi")
    (found,) = world.ask(DiscoverAsk(world.ref(), asking.attachment, None))
    assert [len(agent.sessions) for agent in found.agents] == [100]
    world.time += (72 + 720) * 3600
    for _ in range(10):
        world.wake()
    assert world.rows("SELECT count(*) FROM sessions")[0][0] == 1, "the registry is bounded"


def test_a_clear_begins_here_under_the_same_agent(world: World) -> None:
    before = world.register("n1", agent="Sam")
    eve = world.register("n2", agent="Eve")
    world.ask(world.append(eve.attachment, "a"), world.append(eve.attachment, "b"))
    release(world, before.attachment)
    cleared = world.register("n3", agent="Sam")
    assert (cleared.agent, cleared.display_name, cleared.resumed) == ("Sam", "Sam", False)
    assert cleared.subscriptions[0].position == 2
    release(world, cleared.attachment)
    assert world.register("n1", agent="Sam").subscriptions[0].position == 0


def test_a_root_and_its_children_leave_together_where_they_are_released_together(
    world: World,
) -> None:
    root = world.register("root", agent="Sam")
    children = [
        world.register("root", child=f"c{n}", parent="root", role="review") for n in range(3)
    ]
    world.ask(*(Release(world.ref(), held.attachment) for held in (root, *children)))
    assert world.core._loaded().names == set()
    assert world.register("other", agent="Sam").display_name == "Sam"
    again = world.register("root", child="c9", parent="root", role="review")
    assert again.display_name == "Sam-review"


def test_a_childs_call_beside_its_parent_changes_nothing_for_the_parent(world: World) -> None:
    root = world.register("root", agent="Sam")
    child = world.register("root", child="c1", parent="root", role="review")
    release(world, child.attachment)
    assert world.ask(world.append(root.attachment, "a"))[0].seq == 1
    resumed = world.register("root", child="c1", parent="root")
    assert (resumed.display_name, resumed.resumed) == ("Sam-review", True)


def test_a_child_has_cursors_of_its_own(world: World) -> None:
    root = world.register("root", agent="Sam")
    child = world.register("root", child="c1", parent="root")
    eve = world.register("n2", agent="Eve")
    world.ask(world.append(eve.attachment, "a"))
    moved = [(child.subscriptions[0].id, Seq(1))]
    world.ask(Report(world.ref(), child.attachment, moved))
    (answer,) = world.ask(world.registration("root", attachment=root.attachment))
    assert answer.subscriptions[0].position == 0


def test_a_child_is_named_for_the_agent_and_not_for_the_session_it_belongs_to(
    world: World,
) -> None:
    world.register("n1", agent="Sam")
    second = world.register("n2", agent="Sam")
    assert second.display_name == "Sam2"
    child = world.register("n2", child="c1", parent="n2", role="implement804")
    assert child.display_name == "Sam-implement804"


def test_a_task_that_is_a_sentence_becomes_a_word(world: World) -> None:
    world.register("root", agent="Sam")
    child = world.register(
        "root", child="c1", parent="root", role="review the\tlogin\n page " + "x" * 500
    )
    assert child.display_name.startswith("Sam-review-the-login-page-x")
    assert len(child.display_name) <= 64
    assert world.rows("SELECT length(role) FROM sessions WHERE child = 'c1'") == [(128,)]


def test_a_repository_hint_is_shown_and_never_part_of_the_key(world: World) -> None:
    here = world.register("n1", agent="Sam", repository="tmi")
    release(world, here.attachment)
    there = world.register("n1", agent="Sam", repository="other")
    assert there.session_id == here.session_id
    (sent,) = world.ask(world.append(there.attachment, "a"))
    assert sent.seq == 1
    (commit,) = world.committed()
    assert b'"repository":"other"' in commit.rows[0].envelope
    assert there.display_name == "Sam"


@pytest.mark.parametrize(
    ("hint", "shown"), [("a\nb\x1b[1m", "a b [1m"), ("\u202emoor", "moor"), (" ", None)]
)
def test_a_hint_cannot_imitate_anything(world: World, hint: str, shown: str | None) -> None:
    world.register("n1", repository=hint)
    assert world.rows("SELECT repository FROM sessions") == [(shown,)]


def test_messages_keep_the_name_they_were_sent_under(world: World) -> None:
    first, second = world.register("n1", agent="Sam"), world.register("n2", agent="Sam")
    world.ask(world.append(second.attachment, "a"))
    release(world, first.attachment)
    release(world, second.attachment)
    world.register("n3", agent="Sam")
    world.register("n4", agent="Sam")
    third = world.register("n2", agent="Sam")
    assert third.display_name == "Sam3"
    world.ask(world.append(third.attachment, "b"))
    names = [
        name
        for (name,) in world.rows(
            "SELECT json_extract(CAST(envelope AS TEXT), '$.sender') FROM messages ORDER BY id"
        )
    ]
    assert names == ["Sam2", "Sam3"]


class Claims(RuleBasedStateMachine):
    """Sessions come and go; writers and gateways too."""

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.world = World(Path(self.directory.name))
        self.held: dict[str, Registered] = {}

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.store.close()
            self.directory.cleanup()

    @rule(native=st.sampled_from("abcdef"), agent=st.sampled_from(["Sam", "Sam2", "Eve"]))
    def claim(self, native: str, agent: str) -> None:
        (answer,) = self.world.ask(self.world.registration(native, agent=agent))
        if native in self.held:
            assert code(answer) == "session_already_connected"
        else:
            assert answer.agent == agent
            self.held[native] = answer

    @rule(native=st.sampled_from("abcdef"))
    def leave(self, native: str) -> None:
        if native in self.held:
            release(self.world, self.held.pop(native).attachment)

    @rule()
    def writer_dies(self) -> None:
        self.world.restart()

    @rule()
    def gateway_dies(self) -> None:
        self.world.replace_gateway()
        self.held.clear()

    @invariant()
    def names_are_unique_and_kept(self) -> None:
        if not hasattr(self, "world"):
            return
        names = [answer.display_name for answer in self.held.values()]
        assert len(set(names)) == len(names)
        stored = self.world.rows(
            "SELECT native, display_name FROM sessions WHERE attachment IS NOT NULL"
        )
        assert dict(stored) == {native: held.display_name for native, held in self.held.items()}
        assert self.world.core._loaded().names == set(names)


TestClaims = Claims.TestCase
TestClaims.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


HIDDEN = "Sa\u200bm"


def test_an_agent_or_channel_with_what_cannot_be_seen_is_not_made(world: World) -> None:
    for more in ({"agent": HIDDEN}, {"agent": "e\u0301"}, {"channels": ["general", HIDDEN]}):
        (answer,) = world.ask(world.registration(**more))
        assert code(answer) == "invalid_argument"
    assert world.rows("SELECT name FROM agents") == []
    assert world.rows("SELECT name FROM channels WHERE name = ?", HIDDEN) == []
    sam = world.register()
    (answer,) = world.ask(ChannelCreate(world.ref(), sam.attachment, HIDDEN, "ordinary"))
    assert code(answer) == "invalid_argument"
    assert "U+200B" in answer.failure.message


def test_names_that_were_given_by_a_looser_rule_keep_working(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        for module in ("identity", "subscriptions"):
            before.setattr(f"agentbus.writer.{module}.check_new_name", lambda *_: None)
        old = world.register("n1", agent=HIDDEN)
        world.ask(ChannelCreate(world.ref(), old.attachment, HIDDEN, "ordinary"))
        release(world, old.attachment)
    assert world.register("n1", agent=HIDDEN).resumed
    other = world.register("n2", agent=HIDDEN, channels=[HIDDEN])
    assert (other.agent, other.display_name) == (HIDDEN, f"{HIDDEN}2")
    assert [each.channel for each in other.subscriptions] == [HIDDEN]
    (made,) = world.ask(ChannelCreate(world.ref(), other.attachment, HIDDEN, "ordinary"))
    assert not made.created
    (accepted,) = world.ask(world.append(other.attachment, "m", channel=HIDDEN))
    assert accepted.seq == 1


def test_a_display_name_has_only_what_can_be_seen(world: World) -> None:
    world.register("root", agent="Sam")
    child = {"child": "c", "parent": "root", "role": "\u202efix\u200b the\u00a0e\u0301"}
    assert world.register("root", **child).display_name == "Sam-fix-the-\u00e9"
