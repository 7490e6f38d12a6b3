"""What the daemon consists of: one row a service.

Another service is one more row here and a package that holds its entry point, which is imported
by the forked child alone. Rows are in the order of starting; they are stopped from the last to the
first, so that nothing is asked of a service that has gone: the gateway hands its last reports to
the writer, the writer its last commits to the projector, the projector has Redis write a snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from agentbus.wire.links import (
    GATEWAY_INDEXER,
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
)

REDIS: Final = "redis"
"""The name of the dedicated server among the processes; it is no service and has no links."""

GRACE: Final = 5.0
SNAPSHOT_GRACE: Final = 30.0


class Service(msgspec.Struct, frozen=True):
    """A forked child. `entry` is `module:function`, called with a `ChildContext`.

    `needed`: the daemon is not ready without it, and ends when it cannot be kept running.
    `grace` is how long an orderly stop may take, in seconds.
    """

    name: str
    entry: str
    links: tuple[str, ...]
    needed: bool = True
    grace: float = GRACE
    listens: bool = False
    """Accepts on the bus' socket."""
    told_processes: bool = False
    told_redis: bool = False
    saves_redis: bool = False
    """Is asked for a snapshot of Redis at an orderly stop."""
    searches: bool = False
    """Runs only while the server at hand has no query engine; the projector says so."""


SERVICES: Final[tuple[Service, ...]] = (
    Service(
        "projector",
        "agentbus.projector.main:run",
        (WRITER_PROJECTOR, PROJECTOR_GATEWAY),
        grace=SNAPSHOT_GRACE + GRACE,
        told_redis=True,
        saves_redis=True,
    ),
    Service("writer", "agentbus.writer.main:run", (GATEWAY_WRITER, WRITER_PROJECTOR)),
    Service(
        "indexer",
        "agentbus.indexer.main:run",
        (GATEWAY_INDEXER,),
        needed=False,
        searches=True,
    ),
    Service(
        "gateway",
        "agentbus.gateway.main:run",
        (GATEWAY_WRITER, PROJECTOR_GATEWAY, GATEWAY_INDEXER),
        listens=True,
        told_processes=True,
    ),
)


def ends(services: Sequence[Service]) -> dict[str, tuple[str, str]]:
    """The two services at the ends of each link. Raises ValueError unless each has two."""
    found: dict[str, list[str]] = {}
    for service in services:
        for link in service.links:
            found.setdefault(link, []).append(service.name)
    wrong = [link for link, names in found.items() if len(names) != 2]
    if wrong:
        raise ValueError(f"a link has two ends, which these have not: {', '.join(wrong)}")
    return {link: (names[0], names[1]) for link, names in found.items()}
