"""Looking single messages up in the database, beside the loop: a disk may be slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from agentbus.errors import AgentbusError
from agentbus.gateway.events import Find, Found
from agentbus.store.lookup import Lookup
from agentbus.wire.error_codes import to_failure


class Lookups:
    """One thread with one connection that cannot write; look-ups take turns."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, database: str, on_found: Callable[[Found], None]
    ) -> None:
        self._loop = loop
        self._on_found = on_found
        self._lookup = Lookup(database)
        self._thread = ThreadPoolExecutor(1, "lookups")

    def find(self, asked: Find) -> None:
        """Begins a look-up; it is answered exactly once, in a later turn of the loop."""
        found = self._loop.run_in_executor(self._thread, self._find, asked)
        found.add_done_callback(self._done)

    def _find(self, asked: Find) -> Found:
        find = self._lookup.message if asked.message else self._lookup.memory
        try:
            return Found(asked.ref, find(asked.identity))
        except AgentbusError as error:
            self._lookup.close()
            return Found(asked.ref, None, to_failure(error))

    def _done(self, found: asyncio.Future[Found]) -> None:
        if not found.cancelled():
            self._on_found(found.result())

    def close(self) -> None:
        """Looks nothing up any more; waits for the one that is under way."""
        self._thread.submit(self._lookup.close)
        self._thread.shutdown(wait=True, cancel_futures=False)
