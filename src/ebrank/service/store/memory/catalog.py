"""Features that queries share, as dictionaries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

import numpy as np

from ebrank.service.store.base import check_catalog
from ebrank.service.store.memory.kept import Kept
from ebrank.service.store.records import CatalogCommit, NewItem, Tally
from ebrank.service.store.rows import tally_of
from ebrank.typing import Features


class MemoryCatalog:
    """Features that queries share."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._rows: dict[str, tuple[int, Features | None]] = {}  # by name, with their version

    async def version(self) -> int:
        """Return how many writes have changed the catalog."""
        return self._kept.catalog_version

    async def read(self, names: Sequence[str], since: int = 0) -> dict[str, Features | None]:
        """Return the rows of the items that were put after a version; None for removed ones."""
        found = ((name, self._rows[name]) for name in names if name in self._rows)
        return {
            name: None if row is None else row.copy()
            for name, (version, row) in found
            if version > since
        }

    async def entries(self) -> AsyncIterator[tuple[str, Features]]:
        """Yield all items with their rows, in the order of their names as UTF-8."""
        for name in sorted(self._rows, key=lambda name: name.encode("utf-8", "surrogatepass")):
            row = self._rows[name][1]
            if row is not None:
                yield name, row.copy()

    async def put(
        self,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        known: int | None = None,
    ) -> CatalogCommit:
        """Add items or change their rows, and keep settings in the same transaction."""
        check_catalog(meta, known, self._kept.catalog_version)
        changed, version = 0, self._kept.catalog_version + 1
        for item in items:
            row = np.array(item.features, np.float32)
            old = self._rows.get(item.id, (0, None))[1]
            if old is None or old.tobytes() != row.tobytes():
                self._rows[item.id] = version, row
                changed += 1
        self._kept.meta |= meta or {}
        return self._commit(changed, bool(changed or meta), time)

    async def remove(self, names: Sequence[str], time: float) -> CatalogCommit:
        """Remove items; the version grows by one if any of them existed."""
        changed, version = 0, self._kept.catalog_version + 1
        for name in names:
            if self._rows.get(name, (0, None))[1] is not None:
                self._rows[name] = version, None
                changed += 1
        return self._commit(changed, bool(changed), time)

    def forget(self, name: str) -> bool:
        """Delete an item without a trace; return whether it existed."""
        there = self._rows.pop(name, None) is not None
        self._kept.catalog_version += there
        return there

    def _commit(self, changed: int, rises: bool, time: float) -> CatalogCommit:
        if rises:
            self._kept.catalog_version += 1
            self._kept.touch(time)
        return CatalogCommit(self._kept.catalog_version, changed)

    async def tally(self) -> Tally:
        """Return how many items there are, and how many have a number in each column."""
        return tally_of(row[None] for _, row in self._rows.values() if row is not None)
