"""Queries, their items and what users did with them, as dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ebrank.service.store.base import StoreError, check_catalog
from ebrank.service.store.counting import ItemCounts
from ebrank.service.store.memory.kept import Kept, KeptItem, KeptQuery
from ebrank.service.store.records import LIFE, NewItem, QueryRow, QueryState, Tally
from ebrank.service.store.rows import (
    Count,
    ItemRow,
    count_rows,
    item_rows,
    padded,
    snapshot_of,
    state_of,
    tally_of,
)


class MemoryItems:
    """Queries and their items."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    async def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were added."""
        return list(self._kept.queries)

    async def find(
        self, prefix: str = "", contains: str = "", after: str | None = None, limit: int = 100
    ) -> list[QueryRow]:
        """Return queries whose names begin with a text and contain another, after a name."""
        names = sorted(self._kept.queries, key=lambda name: name.encode("utf-8", "surrogatepass"))
        found = [name for name in names if name.startswith(prefix) and contains in name]
        later = [name for name in found if after is None or name.encode() > after.encode()]
        return [QueryRow(name, len(self._kept.queries[name].items)) for name in later[:limit]]

    async def load(self, query: str) -> QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""
        known = self._kept.queries.get(query)
        return None if known is None else self._state(query, known)

    async def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state as if only what was rolled up had happened."""
        known = self._kept.queries.get(query)
        if known is None:
            return None
        rolled = _count_rows([item.rolled for item in known.items.values()])
        return snapshot_of(self._state(query, known), rolled)

    def _state(self, query: str, known: KeptQuery) -> QueryState:
        items = known.items.values()
        rows = [
            ItemRow(name, item.entered, item.active, item.first_shown)
            for name, item in known.items.items()
        ]
        features = padded([item.features for item in items])
        counts = _count_rows([item.now for item in items])
        return state_of(query, rows, features, counts, known.version)

    async def put(
        self,
        query: str,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        known: int | None = None,
    ) -> int:
        """Add candidates or change their features; return the query's version."""
        if not items:
            return self._kept.queries[query].version if query in self._kept.queries else 0
        kept = self._kept.queries.get(query, KeptQuery(version=LIFE * self._kept.lives))
        check_catalog(meta, known, self._kept.catalog_version)
        self._kept.queries[query] = kept
        for item in items:
            old = kept.items.setdefault(item.id, KeptItem((), time))
            old.features, old.active = item.features, True
        self._kept.meta |= meta or {}
        self._kept.catalog_version += bool(meta)
        self._kept.touch(time)
        return kept.advance()

    async def withdraw(self, query: str, item: str, time: float) -> int | None:
        """Withdraw a candidate; its history stays."""
        known = self._kept.queries.get(query, KeptQuery())
        there = known.items.get(item)
        if there is None or not there.active:
            return None
        there.active = False
        self._kept.touch(time)
        return known.advance()

    async def restore(self, state: QueryState, time: float) -> None:
        """Add a query with the history that its counters hold, as if it had been rolled up."""
        if state.query in self._kept.queries:
            raise StoreError(f"query {state.query!r} is there already")
        features = map(tuple, state.features.tolist())
        items = {
            row.id: KeptItem(numbers, *row[1:])
            for row, numbers in zip(item_rows(state), features, strict=True)
        }
        for place, outcome, slot, count, epoch in count_rows(state):
            item = items[state.ids[place]]
            for counts in (item.now, item.rolled):
                counts.counts[outcome, slot], counts.epoch = count, epoch
        self._kept.queries[state.query] = KeptQuery(items, LIFE * self._kept.lives + 1)
        self._kept.touch(time)

    async def tally(self) -> Tally:
        """Return how many items all queries have, and how many have a number in each column."""
        queries = self._kept.queries.values()
        return tally_of(
            padded([item.features for item in query.items.values()]) for query in queries
        )


def _count_rows(items: Sequence[ItemCounts]) -> list[Count]:
    return [
        (place, outcome, slot, count, one.epoch)
        for place, one in enumerate(items)
        for (outcome, slot), count in one.counts.items()
    ]
