"""Deletion: what is gone, and the proof."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ebrank.service.store.memory.catalog import MemoryCatalog
from ebrank.service.store.memory.kept import Kept
from ebrank.service.store.memory.log import MemoryLog
from ebrank.service.store.records import Deletion, RankingEntry


class MemoryDeletions:
    """Deletes things, and keeps a proof."""

    def __init__(self, kept: Kept, catalog: MemoryCatalog, log: MemoryLog) -> None:
        self._kept = kept
        self._catalog = catalog
        self._log = log

    async def all(self) -> list[Deletion]:
        """Return the proofs of all deletions, oldest first."""
        return list(self._kept.deletions)

    async def query(self, query: str, digest: str, time: float) -> Deletion | None:
        """Delete a query: its items, counters and entries of the log."""
        if self._kept.queries.pop(query, None) is None:
            return None
        self._kept.lives += 1
        return self._noted(Deletion(time, "query", digest, 1, *self._log.remove(query)))

    async def item(
        self, item: str, stand_in: str, digest: str, time: float
    ) -> tuple[Deletion, list[str]] | None:
        """Delete an item from all queries and the catalog."""
        names = [name for name, known in self._kept.queries.items() if item in known.items]
        if not self._catalog.forget(item) and not names:
            return None
        for query in names:
            known = self._kept.queries[query]
            gone = known.items[item]
            gone.features, gone.active = (), False
            known.items = {
                stand_in if one == item else one: row for one, row in known.items.items()
            }
            known.advance()
        self._log.rename(item, stand_in)
        return self._noted(Deletion(time, "item", digest, len(names))), names

    async def user(self, user: str, digest: str, time: float) -> Deletion:
        """Remove a user from all lists, which still count."""
        changed = self._log.rewrite(
            lambda entry: (
                dataclasses.replace(entry, user=None)
                if isinstance(entry, RankingEntry) and entry.user == user
                else entry
            )
        )
        return self._noted(Deletion(time, "user", digest, rankings=changed))

    def _noted(self, deletion: Deletion) -> Deletion:
        self._kept.touch(deletion.time)
        self._kept.deletions.append(deletion)
        return deletion

    async def restore(self, deletions: Sequence[Deletion]) -> None:
        """Add proofs from elsewhere."""
        self._kept.deletions += deletions

    async def purge(self) -> None:
        """Do nothing: there are no files."""
