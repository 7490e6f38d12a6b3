"""What a tool call wants: its checked arguments as a wish, with the size its result may have."""

from __future__ import annotations

from typing import Final

from agentbus.adapter.call import Receive, Who, Wish
from agentbus.adapter.identity import CLAUDE, CODEX, application_of
from agentbus.adapter.operations import Operation
from agentbus.adapter.requests import OPERATION_IDS, Arguments, with_references
from agentbus.client.operation_ids import operation_id
from agentbus.config import KIB, Settings
from agentbus.model.ports import Instant, Tokens

SHOWN_KIB: Final = {CODEX: 8, CLAUDE: 44}
"""How much of a result these programs show their model, measured; others show 28 KiB or more."""

SHOWN_KIB_ELSEWHERE: Final = 28


class Wishes:
    """Knows the user's settings, and makes ids."""

    def __init__(self, settings: Settings, tokens: Tokens) -> None:
        self._settings = settings
        self._tokens = tokens

    def wish(self, tool: str, given: Arguments, client: str | None, now: Instant) -> Wish:
        """Of a call of this client's. Raises InvalidArgument."""
        ceiling = self.ceiling(given.pop("max_kib", None), client)
        if tool == "whoami":
            return Who()
        if tool == "recv":
            limit = int(given.get("max_messages", self._settings.recv_default_count))
            return Receive(limit, ceiling, now.monotonic + given.get("wait_seconds", 0))
        name = OPERATION_IDS.get(tool)
        if name is None:
            return Operation(tool, given, ceiling)
        identifier = given.pop(name, None) or operation_id(now, self._tokens)
        return Operation(tool, with_references(given), ceiling, identifier)

    def ceiling(self, max_kib: float | None, client: str | None) -> int:
        """Bytes of a result: what was asked for, else what the client shows its model."""
        if max_kib is not None:
            return int(max_kib) * KIB
        shown = SHOWN_KIB.get(application_of(client), SHOWN_KIB_ELSEWHERE)
        return min(shown, self._settings.result_default_kib) * KIB
