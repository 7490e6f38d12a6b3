"""How much is on its way to Redis at a time, and what travels alone."""

from __future__ import annotations

from collections.abc import Iterator

from agentbus.mirror.write import Changes, Mark
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.projector.conversation import Check, Pending, Purpose, Write
from agentbus.projector.recover import Step
from agentbus.projector.writes import IN_FLIGHT, Writes
from agentbus.wire.links import RowInserted

MARK = Mark(b"bus", b"1.1", b"0")


def row(seq: int) -> RowInserted:
    return RowInserted(ChannelId(50), Seq(seq), SessionId(1), b"{}", f"m{seq}", 2)


class Server:
    """Keeps what it was asked until it answers."""

    def __init__(self) -> None:
        self.asked: list[Pending] = []
        self.writes = Writes(self._ask, lambda step: step.removals)

    def _ask(self, commands: object, purpose: Purpose, round_number: int) -> None:
        self.asked.append(Pending(purpose, round_number, 0.0))

    def answer(self) -> bool:
        """The oldest one; whether that counts."""
        return self.writes.is_answered(self.asked.pop(0))

    def commits(self) -> list[bytes]:
        """Where the writes that are on their way lead."""
        purposes = [pending.purpose for pending in self.asked]
        return [purpose.step.after.commit for purpose in purposes if isinstance(purpose, Write)]


def steps(*kinds: str) -> Iterator[Step]:
    for number, kind in enumerate(kinds, start=1):
        changes = Changes([row(number)]) if kind == "add" else Changes([], edited=[row(number)])
        yield Step(changes, MARK.at(CommitId(number)))


def test_no_more_is_on_its_way_than_may_be() -> None:
    server = Server()
    server.writes.start(MARK, steps(*["add"] * 5))
    server.writes.go_on(None)
    assert server.commits() == [b"1", b"2"]
    assert server.writes.in_flight == IN_FLIGHT
    assert server.answer()
    server.writes.go_on(None)
    assert server.commits() == [b"2", b"3"]
    assert server.writes.mark == MARK.at(CommitId(3))


def test_what_changes_contents_waits_for_what_is_before_it_and_lets_nothing_pass() -> None:
    server = Server()
    server.writes.start(MARK, steps("add", "edit", "add", "add"))
    seen = []
    for _ in range(3):
        server.writes.go_on(None)
        seen.append(server.commits())
        server.answer()
    assert seen == [[b"1"], [b"2"], [b"3", b"4"]]


def test_answers_to_what_was_disowned_do_not_count() -> None:
    server = Server()
    server.writes.start(MARK, steps("edit", "add"))
    server.writes.go_on(None)
    server.writes.void()
    assert (server.writes.mark, server.writes.in_flight) == (None, 0)
    server.writes.start(MARK, steps("add", "add"))
    server.writes.go_on(None)
    assert server.commits() == [b"1", b"1", b"2"]
    assert not server.answer()
    assert server.writes.in_flight == 2


def test_live_steps_follow_when_nothing_else_is_to_be_done() -> None:
    server = Server()
    later = iter([Step(Changes([row(9)]), MARK.at(CommitId(9)))])
    server.writes.start(MARK, steps("add"))
    server.writes.go_on(lambda _: next(later, None))
    assert server.commits() == [b"1"]
    server.writes.take(None)
    server.writes.go_on(lambda _: next(later, None))
    assert server.commits() == [b"1", b"9"]


def test_other_questions_take_their_place_among_the_writes() -> None:
    server = Server()
    server.writes.start(MARK, steps("add", "edit"))
    server.writes.ask([], Check(MARK))
    server.writes.go_on(None)
    assert server.commits() == [b"1"]
    server.answer()
    server.writes.go_on(None)
    assert server.commits() == [b"1"]
    server.answer()
    server.writes.go_on(None)
    assert server.commits() == [b"2"]
