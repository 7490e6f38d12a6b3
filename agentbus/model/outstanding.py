"""What was pushed to an adapter and not reported yet: it takes room in the window."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from agentbus.model.ids import Seq
from agentbus.model.window import Share

Weights = Sequence[tuple[Seq, int]]
"""Positions, in order, and sizes."""

GAP_SIZE: Final = 0


class _Held:
    """Pushed together; of `weights`, which others may share, those before `start` were reported."""

    __slots__ = ("last", "size", "start", "weights")

    def __init__(self, weights: Weights, size: int) -> None:
        self.weights = weights
        self.size = size
        self.start = 0
        self.last = weights[-1][0]

    @property
    def first(self) -> Seq:
        return self.weights[self.start][0]

    def cut(self, position: Seq) -> tuple[int, int]:
        """Lets go of what is up to a position, which is not all: how many and how large."""
        start = place = self.start
        size = 0
        while self.weights[place][0] <= position:
            size += self.weights[place][1]
            place += 1
        self.start = place
        self.size -= size
        return place - start, size


class Outstanding:
    """Of one subscription. A whole run is one step, whatever is in it."""

    __slots__ = ("_held", "_share", "gaps", "messages")

    def __init__(self, share: Share) -> None:
        self._share = share
        self._held: deque[_Held] = deque()
        self.messages = 0
        self.gaps = 0

    def __bool__(self) -> bool:
        return bool(self._held)

    def __len__(self) -> int:
        return self.messages + self.gaps

    @property
    def first(self) -> Seq:
        """The oldest position; only where there is one."""
        return self._held[0].first

    def push(self, weights: Weights, size: int) -> None:
        """Messages of this size together. None of them may be revised, unless it comes alone."""
        self._share.charge(len(weights), size)
        self.messages += len(weights)
        self._held.append(_Held(weights, size))

    def push_gap(self, position: Seq) -> None:
        """A gap up to there."""
        self._share.charge(1, GAP_SIZE)
        self.gaps += 1
        self._held.append(_Held([(position, GAP_SIZE)], GAP_SIZE))

    def free(self, position: Seq) -> int:
        """What is up to a position was reported; the number of messages among it."""
        held = self._held
        if not held or held[0].first > position:
            return 0
        messages = gaps = size = 0
        while held and held[0].last <= position:
            freed = held.popleft()
            size += freed.size
            if freed.size:
                messages += len(freed.weights) - freed.start
            else:
                gaps += 1
        if held and held[0].first <= position:
            count, part = held[0].cut(position)
            messages += count
            size += part
        self.messages -= messages
        self.gaps -= gaps
        self._share.free(messages + gaps, size)
        return messages

    def revise(self, position: Seq, size: int | None) -> bool:
        """A message has another size now, or is gone (None); False where it is not outstanding."""
        for place, held in enumerate(self._held):
            if held.last == position and held.size:
                if size is None:
                    del self._held[place]
                    self.messages -= 1
                    self._share.free(1, held.size)
                else:
                    self._held[place] = _Held([(position, size)], size)
                    self._share.free(0, held.size - size)
                return True
        return False

    def clear(self) -> None:
        """Gives all the room back."""
        self._share.free(len(self), sum(held.size for held in self._held))
        self._held.clear()
        self.messages = self.gaps = 0
