"""A search as the daemon's processes ask it, carried out in Redis: a refusal is an answer too.

conversation = Conversation(ask, channels, instance, envelopes)
while not conversation.done:
    conversation.take(replies to conversation.commands())
conversation.answer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentbus.errors import AgentbusError, InternalError
from agentbus.model.channel import ChannelInfo
from agentbus.search.query_engine import Command
from agentbus.search.query_engine.read import Envelopes, Searching
from agentbus.search.request import build
from agentbus.wire.error_codes import to_failure
from agentbus.wire.links import SearchAsk, SearchFound, SearchRefused


class Conversation:
    """One search. `instance` is the bus', so that no cursor outlives it."""

    def __init__(
        self,
        ask: SearchAsk,
        channels: Mapping[str, ChannelInfo],
        instance: str,
        envelopes: Envelopes,
    ) -> None:
        self._ref = ask.ref
        self._answer: SearchFound | SearchRefused | None = None
        self._searching: Searching | None = None
        try:
            request = build(
                ask.query,
                ask.filters,
                ask.order,
                ask.limit,
                ask.cursor,
                ask.max_bytes,
                channels,
                instance,
            )
            self._searching = Searching(request, envelopes)
        except AgentbusError as error:
            self.failed(error)

    @property
    def done(self) -> bool:
        """Whether there is an answer."""
        return self._answer is not None or self._searching is None or self._searching.done

    @property
    def answer(self) -> SearchFound | SearchRefused:
        """Once it is done."""
        if self._answer is None:
            self._answer = self._found()
        return self._answer

    def commands(self) -> list[Command]:
        """What to ask next, unless it is done."""
        return [] if self._searching is None else self._searching.commands()

    def take(self, replies: Sequence[Any]) -> None:
        """The replies to the last commands."""
        if self._searching is None:
            return
        try:
            self._searching.take(replies)
        except AgentbusError as error:
            self.failed(error)

    def failed(self, error: AgentbusError) -> None:
        """It ends with this, for example because the connection was lost."""
        self._answer = SearchRefused(self._ref, to_failure(error))

    def _found(self) -> SearchFound | SearchRefused:
        if self._searching is None or not self._searching.done:
            return SearchRefused(self._ref, to_failure(InternalError("the search has not ended")))
        page = self._searching.page()
        return SearchFound(self._ref, page.hits, page.next_cursor)
