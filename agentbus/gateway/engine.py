"""Searching with the query engine of the server, on a connection of its own: a search may take
seconds, and no push is to wait behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from agentbus.errors import Unavailable
from agentbus.gateway.events import Searched, SearchEngine
from agentbus.gateway.redis_link import RedisLink, connecting
from agentbus.mirror.read import Envelopes
from agentbus.mirror.resp import Reply
from agentbus.search.query_engine.conversation import Conversation


class Engine:
    """The searches under way. Each is answered exactly once, in a later turn of the loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_searched: Callable[[Searched], None]
    ) -> None:
        self._loop = loop
        self._on_searched = on_searched
        self._link = RedisLink(connecting("engine"), self._opened, self._lost)
        self._searches: dict[int, Conversation] = {}

    def use(self, path: str | None) -> None:
        """Searches there from now on."""
        self._link.use(path)

    def close(self) -> None:
        """Searches no more."""
        self.use(None)

    def search(self, asked: SearchEngine) -> None:
        """Begins a search."""
        ref = asked.ask.ref
        conversation = Conversation(asked.ask, asked.channels, asked.instance, Envelopes())
        self._searches[ref] = conversation
        if self._link.path is None:
            self._fail(ref, "there is no Redis to search")
        elif conversation.done:
            self._end(ref)
        elif self._link.is_open:
            self._step(ref)
        else:
            self._link.open()

    def _opened(self) -> None:
        for ref in list(self._searches):
            self._step(ref)

    def _lost(self, reason: str) -> None:
        for ref in list(self._searches):
            self._fail(ref, reason)

    def _step(self, ref: int) -> None:
        self._link.ask(self._searches[ref].commands(), partial(self._replied, ref))

    def _replied(self, ref: int, replies: list[Reply]) -> None:
        conversation = self._searches.get(ref)
        if conversation is None:
            return
        conversation.take(replies)
        if conversation.done:
            self._end(ref)
        else:
            self._step(ref)

    def _fail(self, ref: int, reason: str) -> None:
        self._searches[ref].failed(Unavailable(reason))
        self._end(ref)

    def _end(self, ref: int) -> None:
        answer = self._searches.pop(ref).answer
        self._loop.call_soon(self._on_searched, Searched(answer))
