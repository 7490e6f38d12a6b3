from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentbus.cli.demo.ledger import Account, Ledger


def ledger_of_two() -> Ledger:
    ledger = Ledger()
    ledger.join("Ada")
    ledger.join("Ben")
    return ledger


def account(ledger: Ledger, agent: str) -> Account:
    return next(entry for entry in ledger.accounts() if entry.agent == agent)


def test_an_agent_is_due_what_others_sent_and_not_its_own():
    ledger = ledger_of_two()
    ledger.accept("Ada", "m1", 1)
    assert (ledger.missing("Ada"), ledger.missing("Ben")) == (0, 1)
    ledger.receive("Ben", "m1")
    assert ledger.missing("Ben") == 0
    assert account(ledger, "Ben") == Account("Ben", 0, 1, 1, 0, 0, 0)
    assert account(ledger, "Ada") == Account("Ada", 1, 0, 0, 0, 0, 0)


def test_what_was_accepted_and_never_came_is_lost():
    ledger = ledger_of_two()
    ledger.accept("Ada", "m1", 1)
    ledger.accept("Ada", "m2", 2)
    ledger.receive("Ben", "m2")
    assert account(ledger, "Ben").lost == 1


def test_the_same_message_again_is_a_repeat_and_no_loss_of_order():
    ledger = ledger_of_two()
    for seq, name in enumerate(("m1", "m2"), 1):
        ledger.accept("Ada", name, seq)
    for name in ("m1", "m2", "m1", "m2"):
        ledger.receive("Ben", name)
    assert account(ledger, "Ben") == Account("Ben", 0, 2, 2, 2, 0, 0)


def test_a_message_before_an_earlier_one_is_out_of_order():
    ledger = ledger_of_two()
    for seq, name in enumerate(("m1", "m2"), 1):
        ledger.accept("Ada", name, seq)
    for name in ("m2", "m1"):
        ledger.receive("Ben", name)
    assert account(ledger, "Ben").disordered == 1


def test_a_message_may_be_received_before_its_sender_knows_it_was_accepted():
    ledger = ledger_of_two()
    ledger.receive("Ben", "m1")
    assert account(ledger, "Ben").lost == 0
    ledger.accept("Ada", "m1", 1)
    assert account(ledger, "Ben") == Account("Ben", 0, 1, 1, 0, 0, 0)


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(0, 20))
def test_received_and_lost_add_up_to_what_was_due(received, count):
    ledger = ledger_of_two()
    for seq in range(count):
        ledger.accept("Ada", f"m{seq}", seq)
    for seq in received:
        ledger.receive("Ben", f"m{seq}")
    entry = account(ledger, "Ben")
    assert entry.due == count
    assert entry.due - entry.lost == len({seq for seq in received if seq < count})
    assert entry.received + entry.again == len(received)
