"""Programs that `agentbus init` has connected, and disconnected again."""

from __future__ import annotations

from pathlib import Path

from agentbus.adapter.identity import CALLER
from tests.harness.programs import Program
from tests.harness.talk import contents, exchange
from tests.support.daemon import Daemon
from tests.support.stdio import Adapter


def files(home: Path) -> dict[str, bytes]:
    """All that there is."""
    found = (path for path in home.rglob("*") if path.is_file())
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


def test_init_connects_and_remove_leaves_every_byte_as_it_was(
    program: Program, bus: Daemon
) -> None:
    program.configure(None)
    before = files(program.home)
    program.init(bus.environment)
    connected = files(program.home)
    assert "is connected" in program.init(bus.environment)
    assert files(program.home) == connected
    program.init(bus.environment, "--remove")
    assert files(program.home) == before


def test_a_connected_program_talks_and_its_conversation_goes_on(
    program: Program, bus: Daemon, other: Adapter
) -> None:
    program.init(bus.environment)
    with program.begin(None) as harness:
        exchange(harness, harness.turn(), other, "first").say("done")
        assert harness.ends() == 0
        session = harness.session
    other.call("send", channel="general", content="meanwhile")
    with program.begin(None, session) as harness:
        harness.turn().call("recv", wait_seconds=30)
        turn = harness.turn()
        assert contents(turn) == ["meanwhile"]
        exchange(harness, turn, other, "second").say("done")
        assert harness.ends() == 0
        assert harness.session == session
    assert CALLER not in repr(program.model.log), "the model is shown what it has not said"


def test_a_program_that_was_disconnected_knows_nothing_of_the_bus(
    program: Program, bus: Daemon
) -> None:
    program.init(bus.environment)
    program.init(bus.environment, "--remove")
    with program.begin(None) as harness:
        assert harness.ends() == 0
        assert harness.adapters() == []
