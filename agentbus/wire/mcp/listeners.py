"""Who is told when a resource changes.

In the handshake era the client subscribes to a resource by its URI; in the modern one it listens: a
request that stays open, is acknowledged with what will be told, and marks all that it causes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agentbus.wire.mcp import responses
from agentbus.wire.mcp.requests import RequestId
from agentbus.wire.mcp.responses import ServerInfo

MAX_LISTENERS: Final = 64


class Listeners:
    """Open listening requests by their ids, and subscriptions; resources go by their URIs."""

    def __init__(self, uris: Iterable[str]) -> None:
        self._uris = frozenset(uris)
        self._open: dict[RequestId, list[str]] = {}
        self._subscribed: dict[str, None] = {}

    def __contains__(self, identifier: RequestId) -> bool:
        return identifier in self._open

    @property
    def full(self) -> bool:
        """Whether nobody else may listen."""
        return len(self._open) >= MAX_LISTENERS

    def listens(self, uri: str) -> bool:
        """Whether anybody wants to know of changes."""
        return uri in self._subscribed or any(uri in uris for uris in self._open.values())

    def subscribe(self, uri: str) -> None:
        """From now on, once however often it was asked for."""
        self._subscribed[uri] = None

    def unsubscribe(self, uri: str) -> None:
        """No more."""
        self._subscribed.pop(uri, None)

    def greeted(self) -> None:
        """Another handshake: nothing was subscribed to in it."""
        self._subscribed.clear()

    def listen(self, identifier: RequestId, wanted: dict[str, Any]) -> bytes:
        """Opens a subscription to those kinds of changes that there are; its acknowledgment."""
        asked = wanted.get("resourceSubscriptions")
        asked = asked if isinstance(asked, list) else []
        uris = [uri for uri in asked if isinstance(uri, str) and uri in self._uris]
        self._open[identifier] = list(dict.fromkeys(uris))
        return responses.listening(identifier, self._open[identifier])

    def cancel(self, identifier: RequestId) -> None:
        """The client listens no more."""
        self._open.pop(identifier, None)

    def updated(self, uri: str) -> list[bytes]:
        """What everybody who wants to know is told."""
        told = [responses.updated(uri)] if uri in self._subscribed else []
        return told + [
            responses.updated(uri, identifier)
            for identifier, uris in self._open.items()
            if uri in uris
        ]

    def close(self, info: ServerInfo) -> list[bytes]:
        """Ends all listening requests; the answers to them."""
        ends = [
            responses.response(identifier, responses.listened(info, identifier))
            for identifier in self._open
        ]
        self._open.clear()
        return ends
