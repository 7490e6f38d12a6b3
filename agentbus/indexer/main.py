"""The indexer's process: the core on a uvloop, both databases, and a thread for long searches."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, assert_never

from agentbus.indexer import points
from agentbus.indexer.core import Core
from agentbus.indexer.events import Cancel, Event, Renew, Search, Searched
from agentbus.indexer.search import Searcher
from agentbus.runtime import logs, platform
from agentbus.runtime.child import Child
from agentbus.runtime.context import ChildContext
from agentbus.search.fts5.write import IndexWriter
from agentbus.store.lookup import Lookup
from agentbus.store.read import Reader
from agentbus.wire.events import Note
from agentbus.wire.links import GATEWAY_INDEXER, GatewayToIndexer, SearchAsk

BRIEF_SECONDS: Final = 0.003
"""Most searches take a tenth of this, and less than handing them to a thread and back."""

DEADLINE_SECONDS: Final = 2.0
"""A search that takes longer is stopped."""

_log = logs.get(__name__)


def run(context: ChildContext) -> int:
    """Entry point of the service; the exit code.

    In the background: a burst of messages is indexed after it was accepted, not instead.
    """
    platform.step_back()
    child = Child(context, {GATEWAY_INDEXER: GatewayToIndexer})
    return child.run(Indexer(child, context.paths.database, context.paths.index))


class Indexer:
    """The shell: carries effects out. A search is begun at once, and where it is not brief begun
    again in a thread with connections of its own, so that neither it nor indexing wait for long."""

    def __init__(self, child: Child, database: str, index: str) -> None:
        self._child = child
        self._source = Reader(database)
        self._remains = Lookup(database)
        self._index = IndexWriter(index)
        watched = points.watched(self._index, child.fault)
        self._core = Core(self._source, self._remains, watched)
        self._brief = Searcher(index, database)
        self._searcher = Searcher(index, database)
        self._thread = ThreadPoolExecutor(1, "search")
        self._cancelled: set[int] = set()
        self._ending = False

    async def start(self) -> None:
        """Links are served at once; the databases are awaited by the core."""
        self._child.ready()

    async def close(self) -> None:
        """Ends what the thread does, and closes the files."""
        self._ending = True
        await asyncio.wrap_future(self._thread.submit(self._searcher.close))
        self._thread.shutdown()
        self._brief.close()
        self._index.close()
        self._source.close()
        self._remains.close()

    def handle(self, event: Event) -> None:
        """One event, and what follows from it."""
        effects = self._core.handle(event, self._child.now())
        for effect in self._child.perform(effects):
            self._perform(effect)

    def _perform(self, effect: Search | Cancel | Renew | Note) -> None:
        match effect:
            case Search(number, ask):
                self._begin(number, ask)
            case Cancel(number):
                self._cancelled.add(number)
            case Renew():
                self._brief.close()
                self._thread.submit(self._searcher.close)
            case Note(level, action, fields):
                getattr(_log, level)(action, **fields)
            case _:
                assert_never(effect)

    def _begin(self, number: int, ask: SearchAsk) -> None:
        clock = self._child.clock
        until = clock.now().monotonic + BRIEF_SECONDS
        stopped = False

        def stop() -> bool:
            nonlocal stopped
            stopped = stopped or clock.now().monotonic > until
            return stopped

        found = self._brief.run(number, ask, stop)
        if not stopped:
            self.handle(found)
            return
        future = self._thread.submit(self._search, number, ask)
        future.add_done_callback(partial(self._hand_over, number))

    def _search(self, number: int, ask: SearchAsk) -> Searched:
        """In the thread."""
        clock = self._child.clock
        until = clock.now().monotonic + DEADLINE_SECONDS

        def stop() -> bool:
            return self._ending or number in self._cancelled or clock.now().monotonic > until

        return self._searcher.run(number, ask, stop)

    def _hand_over(self, number: int, done: Future[Searched]) -> None:
        """From the thread to the loop."""
        if not self._ending:
            self._child.loop.call_soon_threadsafe(self._searched, number, done)

    def _searched(self, number: int, done: Future[Searched]) -> None:
        self._cancelled.discard(number)
        error = done.exception()
        if error is not None:
            self._child.crash(error, "search")
            return
        try:
            self.handle(done.result())
        except Exception as fault:  # noqa: BLE001 - the core's state is not to be trusted any more
            self._child.crash(fault, "searched")
