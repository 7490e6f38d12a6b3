"""The accounts of the demo: what the bus accepted, and what each agent got of it; pure."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec


class Account(msgspec.Struct, frozen=True):
    """One agent's balance. `again` counts repeats of the same message, which a crash of an
    adapter allows; `lost` and `disordered` must be 0."""

    agent: str
    sent: int
    due: int
    received: int
    again: int
    lost: int
    disordered: int


class Ledger:
    """Every agent is due each message that others sent while it was on the channel."""

    def __init__(self) -> None:
        self._accepted: dict[str, tuple[str, int]] = {}
        self._received: dict[str, list[str]] = {}

    def join(self, agent: str) -> None:
        """From now on this agent is due what others send."""
        self._received.setdefault(agent, [])

    def accept(self, agent: str, message_id: str, seq: int) -> None:
        """The bus has promised to keep this message, at this position."""
        self._accepted[message_id] = (agent, seq)

    def receive(self, agent: str, message_id: str) -> None:
        """This message was handed to the agent."""
        self._received[agent].append(message_id)

    def missing(self, agent: str) -> int:
        """How many the agent is still due."""
        return len(self._due(agent) - set(self._received[agent]))

    def accounts(self) -> list[Account]:
        """One for each agent, in the order they joined."""
        return [self._account(agent) for agent in self._received]

    def _due(self, agent: str) -> set[str]:
        return {name for name, (sender, _) in self._accepted.items() if sender != agent}

    def _account(self, agent: str) -> Account:
        due = self._due(agent)
        times = Counter(self._received[agent])
        positions = [self._accepted[name][1] for name in times if name in self._accepted]
        return Account(
            agent=agent,
            sent=sum(sender == agent for sender, _ in self._accepted.values()),
            due=len(due),
            received=len(times),
            again=sum(times.values()) - len(times),
            lost=len(due - set(times)),
            disordered=sum(a > b for a, b in pairwise(positions)),
        )
