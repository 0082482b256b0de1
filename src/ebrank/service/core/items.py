"""Who may be listed: candidates enter with features that fit the schema, change, and withdraw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ebrank.service import api
from ebrank.service.core.feature_schema import FeatureSchema
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.core.queries import LiveQuery, Queries
from ebrank.service.insight.activity import Activity
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.service.store.records import NewItem
from ebrank.settings import SettingsError
from ebrank.typing import Features

SCHEMA = "features"
FIRST_ITEM = "first_item"  # when the first item entered, in seconds since 1970


class Items:
    """Adds and withdraws candidates, in the store first and then in memory."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        queries: Queries,
        activity: Activity,
        stored_schema: str | None,
    ) -> None:
        self._store = store
        self._queries = queries
        self._activity = activity
        self._missing_allowed = settings.features.missing != "reject"
        self._schema = _schema(stored_schema, settings)
        self._stored = self._schema is not None and stored_schema == self._schema.to_json()

    async def query(self, name: str, now: float) -> LiveQuery:
        """Return a query that has, or had, candidates."""
        live = await self._queries.get(name, now)
        if live is None:
            raise NotFound(f"query {name!r} is not known: put items first", "query")
        return live

    async def put(
        self, query: str, items: Sequence[api.ItemIn], now: float, *, skip_known: bool = False
    ) -> api.PutItemsResponse:
        """Add candidates or change their features, all or none; on disk after the next flush.

        With `skip_known`, what memory holds as given is not written again. Memory may be behind
        another server's writes, so this is for callers who send the same items again and again:
        the write that follows tells memory that it is behind.
        """
        live = await self._queries.get(query, now)
        nothing = api.PutItemsResponse(query, 0, 0, 0 if live is None else len(live.candidates))
        if not items:
            return nothing
        _check_distinct(items)
        schema = self._schema or FeatureSchema.of(items)
        features = schema.rows(items, missing_allowed=self._missing_allowed)
        new: Sequence[int] = range(len(items))
        if skip_known and live is not None:
            new = _unlike(live, items, features)
        if not new:
            return nothing
        rows = [NewItem(items[at].id, tuple(features[at].tolist())) for at in new]
        # The schema with the first items, or neither: it must not be that of items refused.
        meta = None if self._stored else {SCHEMA: schema.to_json(), FIRST_ITEM: repr(now)}
        known = set() if live is None else set(live.ids)
        added = sum(row.id not in known for row in rows)
        version = await self._store.items.put(query, rows, now, meta=meta)
        self._schema, self._stored = schema, True
        changed = self._queries.wrote(query, version)
        if version == 1:
            changed = self._queries.empty(query, schema.count, now)
            changed.follows(version)
        if changed is not None:
            changed.put(rows, now)
            self._queries.admit(changed)
        self._activity.items(items=added, queries=int(live is None))
        candidates = len((changed or await self.query(query, now)).candidates)
        return api.PutItemsResponse(query, added, len(rows) - added, candidates)

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


def _unlike(live: LiveQuery, items: Sequence[api.ItemIn], features: Features) -> Sequence[int]:
    """Return which items are no candidates of a query yet, or have other features there."""
    rows = live.rows_of([item.id for item in items])
    there = np.array([-1 if row is None else row for row in rows])
    stored = live.state.features[there]
    same = ((features == stored) | (np.isnan(features) & np.isnan(stored))).all(axis=1)
    same &= (there >= 0) & live.state.active[there]
    return np.flatnonzero(~same).tolist()


def _check_distinct(items: Sequence[api.ItemIn]) -> None:
    """Refuse two items of one name: it is unclear whose features are meant."""
    [(name, times)] = Counter(item.id for item in items).most_common(1)
    if times > 1:
        raise Problem(f"item {name!r} is given {times} times. Give it once", "items")


def _schema(stored: str | None, settings: Settings) -> FeatureSchema | None:
    """Return the schema that the data, or else the settings, fix; None if the first items will."""
    names = settings.features.names
    if stored is None:
        return None if names is None else FeatureSchema.named(names)
    schema = FeatureSchema.from_json(stored)
    if names is not None and schema == FeatureSchema(len(names)):
        return FeatureSchema.named(names)  # they had none so far
    if names is not None and schema.names != tuple(names):
        was = f"{schema.count} without names" if schema.names is None else ", ".join(schema.names)
        raise SettingsError(
            f"features.names: the store's items have other features ({was}). "
            "Leave the setting out, or serve another store"
        )
    return schema
