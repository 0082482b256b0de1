"""The candidates of queries: they enter with features that fit the schema, change, and withdraw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ebrank.service import api
from ebrank.service.core import problems
from ebrank.service.core.background import Turns
from ebrank.service.core.feature_schema import FeatureSchema
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.problems import NotFound, Problem, unknown_query
from ebrank.service.core.resources import Resources, Watcher
from ebrank.service.store.base import CatalogChanged
from ebrank.service.store.records import LIFE, NewItem
from ebrank.typing import Features

LISTED_AT_ONCE = 250
"""New items of a list that are added at once, in some 4 ms: more than of a PUT, since users wait
for lists."""
FIRST_ITEM = "first_item"  # when the first item entered, in seconds since 1970


class Items:
    """Adds and withdraws candidates, in the store first and then in memory.

    Attributes:
        shared: whether other servers may change them too.
    """

    def __init__(self, resources: Resources, watcher: Watcher) -> None:
        self._store = resources.store
        self._catalog = resources.catalog
        self._queries = resources.queries
        self._watcher = watcher
        self._first = FIRST_ITEM not in resources.meta
        self.shared = False

    async def query(self, name: str, now: float) -> LiveQuery:
        """Return a query that has, or had, candidates."""
        live = await self._queries.get(name, now)
        if live is None:
            raise unknown_query(name)
        return live

    async def put(
        self,
        query: str,
        items: Sequence[api.ItemIn],
        now: float,
        *,
        skip_known: bool = False,
        begun: FeatureSchema | None = None,
        admit: Callable[[], None] = lambda: None,
        reread: bool = False,
    ) -> api.PutItemsResponse:
        """Add candidates or change their features, all or none; on disk after the next flush.

        `begun` is the schema, if items besides these determine it. `admit` is called before a query
        is created, and raises if it must not be. `reread` says that memory has just been read.

        With `skip_known`, items that memory already has are not written again. Memory may be behind
        another server's writes, so this is for callers who send the same items again and again: the
        write that follows tells memory that it is behind. Such callers must not bring back what was
        withdrawn. If many of the items are new, they are added a portion at a time.
        """
        live = await self._queries.get(query, now)
        nothing = api.PutItemsResponse(query, 0, 0, 0 if live is None else len(live.candidates))
        if not items:
            return nothing
        check_distinct(items)
        again = partial(self.put, query, items, now, skip_known=skip_known)
        if not self._catalog.schema.features:
            await self._catalog.follow()  # another server may have had the first items
        before = self._catalog.schema
        schema = begun if begun and not before.pair.width else _begun(before, items)
        rows = [None] * len(items) if live is None else live.rows_of([item.id for item in items])
        own, kept = await self._rows(items, schema, live, rows)
        new: Sequence[int] = range(len(items))
        if skip_known and live is not None and live.keys == schema.keys:
            new = _unlike(live, rows, own, schema)
        if not new:
            return nothing
        if self.shared and not reread and not kept.isdisjoint(new):
            self._queries.forget(query)  # another server may have changed what they keep
            return await again(begun=begun, admit=admit, reread=True)
        if skip_known and len(new) > LISTED_AT_ONCE:
            unknown, turns = [items[at] for at in new], Turns()  # without waiting for long calls
            return await self.put_many(
                query, unknown, lambda: now, turns, skip_known=True, admit=admit
            )
        names, own = [items[at].id for at in new], own[list(new)]
        joined = self._catalog.version
        keys, features, withdrawn = await self._catalog.joined(names, own, schema)
        if skip_known and withdrawn.any():
            gone = [name for name, mark in zip(names, withdrawn.tolist(), strict=True) if mark]
            raise problems.withdrawn(gone, everywhere=True)
        if self._catalog.schema is not before:  # features were changed while we read
            return await again(admit=admit)
        # The schema with the first items, or neither: it must not be that of rejected items.
        meta, catalog_version = self._catalog.settings_with(schema), self._catalog.version
        added = len(names)
        if live is not None:
            rows = live.rows_of(names)
            added = rows.count(None)
            if skip_known:
                reject_withdrawn(live, names, rows)
        if live is None:
            admit()
        stored = _new_items(names, own)
        try:
            version = await self._store.items.put(
                query, stored, now, meta=meta, based_on=catalog_version
            )
        except CatalogChanged:  # others had the first items: theirs decide
            await self._catalog.follow()
            return await again()  # which was admitted
        if meta:
            self._catalog.wrote(catalog_version + 1)
            self._catalog.fix(schema)
        changed = self._queries.wrote(query, version)
        if version % LIFE == 1:
            changed = self._queries.empty(query, keys, now, version)
        if changed is not None and changed.keys != keys:  # features were changed meanwhile
            self._queries.forget(query)
            changed = None
        if changed is not None:
            changed.put(_new_items(names, features), now)
            changed.mark(np.array(changed.rows_of(names)), withdrawn)
            changed.catalog = min(changed.catalog, joined)  # it may have changed meanwhile
            self._queries.admit(changed)
        if self._first:
            await self._store.meta.settle({FIRST_ITEM: repr(now)})
            self._first = False
        self._watcher.items(items=added, queries=int(live is None))
        candidates = len((changed or await self.query(query, now)).candidates)
        return api.PutItemsResponse(query, added, len(names) - added, candidates)

    async def _rows(
        self,
        items: Sequence[api.ItemIn],
        schema: FeatureSchema,
        live: LiveQuery | None,
        rows: Sequence[int | None],
    ) -> tuple[Features, set[int]]:
        """Return items' own features as stored, and which of them keep some they had before.

        `rows` are their rows in memory.

        An item keeps the features that it leaves out. If it is new and leaves out all, the catalog
        must have it. If missing values are rejected, the catalog must have all new items, unless
        the features there are optional.
        """
        allowed, names = self._catalog.missing_allowed, [item.id for item in items]
        bare = [at for at, item in enumerate(items) if not item.features]
        in_full = not (allowed or all(feature.optional for feature in schema.shared.features))
        asked = range(len(items)) if in_full else bare
        new = [names[at] for at in asked if rows[at] is None]
        in_catalog = await self._catalog.read(new, schema)
        if in_full:
            unknown = [name for name in new if name not in in_catalog]
            if unknown:
                raise Problem(
                    f"item {unknown[0]!r} is not in the catalog: PUT /v1/items first. Missing "
                    "values are rejected (features.missing)",
                    "items",
                )
        exempt = {names[at] for at in bare if rows[at] is not None or names[at] in in_catalog}
        own = schema.pair.rows(items, missing_allowed=allowed, exempt=exempt)
        kept = set[int]()
        if live is not None and live.keys == schema.keys:
            pair, before = schema.pair, np.full(own.shape[1], np.nan, np.float32)
            for at in pair.lacking(own):
                if rows[at] is not None:
                    before[pair.columns] = live.state.features[rows[at], pair.places]
                    if pair.keep(own[at], items[at], before):
                        kept.add(at)
        return own, kept

    async def put_many(
        self,
        query: str,
        items: Sequence[api.ItemIn],
        clock: Callable[[], float],
        turns: Turns,
        *,
        skip_known: bool = False,
        admit: Callable[[], None] = lambda: None,
    ) -> api.PutItemsResponse:
        """Add candidates, or change their features; if they are many, a portion at a time.

        If one of them is wrong, none is stored. If the store fails midway, or the process ends, the
        portions before that are there; the same call again stores all.
        """
        size = LISTED_AT_ONCE if skip_known else api.ITEMS_AT_ONCE
        if len(items) <= size:
            return await self.put(query, items, clock(), skip_known=skip_known, admit=admit)
        check_distinct(items)
        schema, live = _begun(self._catalog.schema, items), await self._queries.get(query, clock())
        added = changed = 0
        async with turns:
            async for portion in turns.portions(items, size):
                names = [item.id for item in portion]
                rows = [None] * len(names) if live is None else live.rows_of(names)
                await self._rows(portion, schema, live, rows)
            begun: FeatureSchema | None = schema
            async for portion in turns.portions(items, size):
                answer = await self.put(
                    query, portion, clock(), skip_known=skip_known, begun=begun, admit=admit
                )
                added, changed = added + answer.added, changed + answer.changed
                begun = None  # the catalog has it now
        return api.PutItemsResponse(query, added, changed, answer.candidates)

    async def withdraw(self, query: str, item: str, now: float) -> api.WithdrawResponse:
        """Withdraw a candidate; on disk after the next flush."""
        live = await self.query(query, now)
        [row] = live.rows_of([item])
        if row is None:
            raise NotFound(f"query {query!r} has no item {item!r}", "item")
        version = await self._store.items.withdraw(query, item, now)
        changed = None if version is None else self._queries.wrote(query, version)
        if changed is not None:
            changed.withdraw(row)
        return api.WithdrawResponse(query, item, version is not None)


def _begun(schema: FeatureSchema, items: Sequence[api.ItemIn]) -> FeatureSchema:
    """Return the schema with what the first items determine."""
    begun = schema.begun(items)
    if not begun.features:
        raise Problem(
            f"item {items[0].id!r} has no features, but the first items determine those of all. "
            "If you have none, send a constant such as [1]",
            "items",
        )
    return begun


def _unlike(
    live: LiveQuery, rows: Sequence[int | None], own: Features, schema: FeatureSchema
) -> Sequence[int]:
    """Return which items are not yet candidates of a query, or have other features there."""
    there = np.array([-1 if row is None else row for row in rows])
    stored = live.state.features[there][:, schema.pair.places]
    given = own[:, schema.pair.columns]
    same = ((given == stored) | (np.isnan(given) & np.isnan(stored))).all(axis=1)
    same &= (there >= 0) & live.state.active[there]
    return np.flatnonzero(~same).tolist()


def _new_items(names: Sequence[str], features: Features) -> list[NewItem]:
    return [NewItem(name, tuple(row)) for name, row in zip(names, features.tolist(), strict=True)]


def reject_withdrawn(live: LiveQuery, names: Sequence[str], rows: Sequence[int | None]) -> None:
    """Raise if items are withdrawn: a caller who may only rank must not bring them back."""
    if live.active.all():
        return
    for marks, everywhere in ((live.withdrawn, True), (~live.state.active, False)):
        gone = [
            name for name, row in zip(names, rows, strict=True) if row is not None and marks[row]
        ]
        if gone:
            raise problems.withdrawn(gone, everywhere=everywhere)


def check_distinct(items: Sequence[api.ItemIn]) -> None:
    """Raise if two items have one name: it is unclear which features are meant."""
    for name, times in Counter(item.id for item in items).most_common(1):
        if times == 1:
            return
        raise Problem(f"item {name!r} appears {times} times. Send it once", "items")
