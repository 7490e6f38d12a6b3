"""What each MCP revision knows of the things we send."""

from __future__ import annotations

from typing import Final

import msgspec


class Revision(msgspec.Struct, frozen=True):
    """A revision by the fields and habits it adds or drops."""

    name: str
    modern: bool = False
    batches: bool = False
    annotations: bool = True
    structured: bool = True
    """Titles, output schemas, structured content and `_meta` of tools came together."""


HANDSHAKE: Final = (
    Revision("2024-11-05", annotations=False, structured=False),
    Revision("2025-03-26", batches=True, structured=False),
    Revision("2025-06-18"),
    Revision("2025-11-25"),
)
"""By `initialize`, oldest first."""

MODERN: Final = (Revision("2026-07-28", modern=True),)
"""By the `_meta` of each request."""

LATEST_HANDSHAKE: Final = HANDSHAKE[-1]

SUPPORTED: Final = tuple(revision.name for revision in (*MODERN, *reversed(HANDSHAKE)))
"""All names, newest first."""

_BY_NAME: Final = {revision.name: revision for revision in (*HANDSHAKE, *MODERN)}


def negotiate(requested: str) -> Revision:
    """The answer to `initialize`: what was asked for, else the latest one with a handshake."""
    found = _BY_NAME.get(requested)
    return found if found is not None and not found.modern else LATEST_HANDSHAKE


def modern(requested: str) -> Revision | None:
    """The modern revision of that name, None where it is not supported."""
    found = _BY_NAME.get(requested)
    return found if found is not None and found.modern else None
