"""The shell around the indexer's core; both databases are real."""

from __future__ import annotations

from typing import Any

from agentbus.indexer.core import Core
from agentbus.indexer.events import Cancel, Renew, Search
from agentbus.indexer.search import Searcher
from agentbus.search.fts5.write import IndexWriter
from agentbus.store.lookup import Lookup
from agentbus.store.read import Reader
from agentbus.wire.events import Note
from agentbus.wire.links import GATEWAY_INDEXER, GatewayToIndexer, SearchAsk
from tests.support.simulation.children import Child, check_note
from tests.support.simulation.disk import Disk


class Indexer:
    """Searches are carried out in a later turn, whole. `core` is there for checks."""

    def __init__(self, child: Child, disk: Disk) -> None:
        self.unions = {GATEWAY_INDEXER: GatewayToIndexer}
        self._child = child
        self._disk = disk
        self._source = Reader(disk.database)
        self._remains = Lookup(disk.database)
        self._index = IndexWriter(disk.index)
        self._searcher = Searcher(disk.index, disk.database)
        self.core = Core(self._source, self._remains, self._index)

    def start(self) -> None:
        """Links are served at once."""
        self._child.ready()

    def handle(self, event: Any) -> list[Any]:
        """One event."""
        with self._disk.used():
            return list(self.core.handle(event, self._child.scheduler.instant()))

    def perform(self, effect: Any) -> None:
        """Searches."""
        match effect:
            case Search(number, ask):
                self._child.call_soon(lambda: self._search(number, ask))
            case Cancel():
                pass  # it is over before this is read
            case Renew():
                self._searcher.close()
            case Note(level, action, fields):
                check_note(level, action, fields)
            case _:
                raise TypeError(type(effect))

    def _search(self, number: int, ask: SearchAsk) -> None:
        with self._disk.used():
            searched = self._searcher.run(number, ask, lambda: False)
        self._child.happened(searched)

    def close(self) -> None:
        """As it is when it dies."""

    def died(self) -> None:
        """The files are not open any more."""
        for each in (self._searcher, self._index, self._source, self._remains):
            each.close()
