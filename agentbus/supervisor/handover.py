"""Which end of which pair goes to whom: pure bookkeeping over numbered pairs.

When a service is forked, each of its links gets a fresh pair: one end goes along with the fork,
the other to the peer. A peer that runs is handed its end, one acknowledged transfer at a time
(descriptors and bytes of one socket must not get out of step); one that does not run yet has it
kept until it is forked. What a dead service was to get is dropped, so that its peer sees the end
of file that it waits for.
"""

from __future__ import annotations

import msgspec


class End(msgspec.Struct, frozen=True):
    """One end of a pair: the one that is for `owner`."""

    link: str
    number: int
    owner: str


class Handover:
    """The ends that the supervisor holds; `peers` are the two services of each link."""

    def __init__(self, peers: dict[str, tuple[str, str]]) -> None:
        self._peers = peers
        self._numbers: dict[str, int] = dict.fromkeys(peers, 0)
        self._kept: dict[tuple[str, str], End] = {}
        self._waiting: dict[str, list[End]] = {}
        self._sent: dict[str, End] = {}

    def fork(self, name: str, serving: frozenset[str]) -> tuple[list[End], list[End]]:
        """The ends for a service about to be forked, and those that are of no use any more.

        `serving` are the services that can be handed an end; each may have a transfer `due` now.
        """
        given, dropped = [], []
        for link, peers in self._peers.items():
            if name not in peers:
                continue
            kept = self._kept.pop((link, name), None)
            if kept is None:
                peer = peers[1] if peers[0] == name else peers[0]
                kept, replaced = self._fresh(link, name, peer, serving)
                dropped += replaced
            given.append(kept)
        return given, dropped

    def _fresh(
        self, link: str, name: str, peer: str, serving: frozenset[str]
    ) -> tuple[End, list[End]]:
        self._numbers[link] += 1
        number = self._numbers[link]
        other = End(link, number, peer)
        if peer in serving:
            waiting = self._waiting.setdefault(peer, [])
            replaced = [end for end in waiting if end.link == link]
            self._waiting[peer] = [end for end in waiting if end.link != link] + [other]
        else:
            kept = self._kept.get((link, peer))
            replaced = [kept] if kept else []
            self._kept[link, peer] = other
        return End(link, number, name), replaced

    def due(self, name: str) -> End | None:
        """The transfer to begin with a service now, which then is in flight until `taken`."""
        waiting = self._waiting.get(name)
        if not waiting or name in self._sent:
            return None
        self._sent[name] = waiting.pop(0)
        return self._sent[name]

    def taken(self, name: str, link: str, number: int) -> bool:
        """A service uses an end that it was handed; False where that was not in flight."""
        sent = self._sent.get(name)
        if sent is None or (sent.link, sent.number) != (link, number):
            return False
        del self._sent[name]
        return True

    def died(self, name: str) -> list[End]:
        """The ends that a service's death makes useless: its own transfers, and whatever leads
        to it. What is kept for its successor stays."""
        self._sent.pop(name, None)
        dropped = self._waiting.pop(name, [])
        for link, peers in self._peers.items():
            if name not in peers:
                continue
            peer = peers[1] if peers[0] == name else peers[0]
            kept = self._kept.pop((link, peer), None)
            dropped += [kept] if kept else []
            waiting = self._waiting.get(peer, [])
            dropped += [end for end in waiting if end.link == link]
            self._waiting[peer] = [end for end in waiting if end.link != link]
        return dropped
