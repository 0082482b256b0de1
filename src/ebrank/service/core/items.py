"""The candidates of queries: they enter with features that fit the schema, change, and withdraw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from typing import TypeVar

import numpy as np

from ebrank.service import api
from ebrank.service.core import problems
from ebrank.service.core.background import Turns
from ebrank.service.core.feature_schema import FeatureKind, FeatureSchema
from ebrank.service.core.fleet import Fleet
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.problems import NotFound, Problem, unknown_query
from ebrank.service.core.resources import Resources, Watcher
from ebrank.service.store.base import CatalogChanged
from ebrank.service.store.records import LIFE, NewItem
from ebrank.typing import Bools, Features

T = TypeVar("T")

LISTED_AT_ONCE = 250
"""New items of a list that are added at once, in some 4 ms: more than of a PUT, since users wait
for lists."""
FIRST_ITEM = "first_item"  # when the first item entered, in seconds since 1970


class OutdatedError(Exception):
    """Somebody changed what an addition was prepared from: it is prepared again."""


@dataclass
class Addition:
    """Items on their way into a query.

    Attributes:
        listed: whether a list asks for them. Then items that memory has are not written again, and
            withdrawn ones are refused: a caller who may only rank must not bring them back.
        begun: the schema, if items besides these determine it.
        admit: called before a query is created; raises if it must not be.
        reread: whether memory has just been read from the store.
    """

    query: str
    items: Sequence[api.ItemIn]
    now: float
    listed: bool = False
    begun: FeatureSchema | None = None
    admit: Callable[[], None] | None = None
    reread: bool = False


@dataclass
class Prepared:
    """Items that fit the schema, to be written.

    Attributes:
        live: their query, None if it is new.
        before: the schema when they were prepared.
        schema: the schema with them.
        names: the items.
        features: their own, as stored.
    """

    live: LiveQuery | None
    before: FeatureSchema
    schema: FeatureSchema
    names: list[str]
    features: Features

    @property
    def added(self) -> int:
        """How many of the items are new to the query."""
        return len(self.names) if self.live is None else self.live.rows_of(self.names).count(None)


@dataclass
class Joined:
    """Items with the catalog's features, as lists will see them; `version` is the catalog's."""

    keys: Sequence[str]
    features: Features
    withdrawn: Bools
    version: int


class Items:
    """Adds and withdraws candidates, in the store first and then in memory."""

    def __init__(self, resources: Resources, fleet: Fleet, watcher: Watcher) -> None:
        self._unknown = resources.settings.ranking.unknown
        self._fleet = fleet
        self._store = resources.store
        self._catalog = resources.catalog
        self._queries = resources.queries
        self._watcher = watcher
        self._first = FIRST_ITEM not in resources.meta

    async def query(self, name: str, now: float) -> LiveQuery:
        """Return a query that has, or had, candidates."""
        live = await self._queries.get(name, now)
        if live is None:
            raise unknown_query(name)
        return live

    async def put(
        self, query: str, items: Sequence[api.ItemIn], clock: Callable[[], float], turns: Turns
    ) -> api.PutItemsResponse:
        """Add candidates or change their features; on disk after the next flush.

        If one of them is wrong, none is stored. Many are stored a portion at a time: if the store
        fails midway, or the process ends, the portions before that are there, and the same call
        again stores all.
        """
        if len(items) <= api.ITEMS_AT_ONCE:
            return await self._add(Addition(query, items, clock()))
        check_distinct(items)
        schema, live = _begun(self._catalog.schema, items), await self._queries.get(query, clock())
        added = changed = 0
        async with turns:
            async for portion in turns.portions(items, api.ITEMS_AT_ONCE):
                names = [item.id for item in portion]
                rows = [None] * len(names) if live is None else live.rows_of(names)
                await self._rows(portion, schema, live, rows)
            async for portion in turns.portions(items, api.ITEMS_AT_ONCE):
                answer = await self._add(Addition(query, portion, clock(), begun=schema))
                added, changed = added + answer.added, changed + answer.changed
        return api.PutItemsResponse(query, added, changed, answer.candidates)

    async def enter(
        self,
        query: str,
        items: Sequence[str | api.ItemIn],
        now: float,
        admit: Callable[[], None],
    ) -> None:
        """Let the items of a list into its query; on disk after the next flush.

        Memory may be behind another server's writes; the write that follows notices.
        """
        live = await self._queries.get(query, now)
        given = [item for item in items if isinstance(item, api.ItemIn)]
        names, described = ids_of(items), {item.id for item in given}
        rows = [None] * len(names) if live is None else live.rows_of(names)
        if live is not None:
            reject_withdrawn(live, names, rows)
        pairs = zip(names, rows, strict=True)
        unknown = [name for name, row in pairs if row is None and name not in described]
        if unknown:
            given += await self._introduced(unknown)
        if given:
            await self._entered(query, given, now, admit)

    async def _introduced(self, names: Sequence[str]) -> list[api.ItemIn]:
        """Return items of which a request gives the id alone; raise if they may not enter."""
        if self._unknown == "reject":
            in_catalog = await self._catalog.read(names)
            strangers = [name for name in names if name not in in_catalog]
            if strangers:
                raise problems.not_candidates(strangers)
        features: list[float | None] = [] if self._catalog.schema.features else [1.0]  # the first
        return [api.ItemIn(name, features or {}) for name in names]

    async def _entered(
        self, query: str, items: Sequence[api.ItemIn], now: float, admit: Callable[[], None]
    ) -> None:
        check_distinct(items)
        if len(items) <= LISTED_AT_ONCE:
            await self._add(Addition(query, items, now, True, None, admit))
            return
        schema = _begun(self._catalog.schema, items)
        whole = Addition(query, items, now, True, schema, admit)
        lacking = {*(await _settled(lambda: self._prepared(whole))).names}
        new = [item for item in items if item.id in lacking]
        async with Turns() as turns:  # of its own: a list does not wait for long calls
            async for portion in turns.portions(new, LISTED_AT_ONCE):
                await self._add(Addition(query, portion, now, True, schema, admit))

    async def _add(self, addition: Addition) -> api.PutItemsResponse:
        """Add or change items, all or none."""
        check_distinct(addition.items)
        return await _settled(lambda: self._written(addition))

    async def _written(self, addition: Addition) -> api.PutItemsResponse:
        query, now = addition.query, addition.now
        prepared = await self._prepared(addition) if addition.items else None
        if prepared is None or not prepared.names:
            live = await self._queries.get(query, now)
            return api.PutItemsResponse(query, 0, 0, 0 if live is None else len(live.candidates))
        live, names = prepared.live, prepared.names
        joined = await self._joined(addition, prepared)
        added = prepared.added
        version = await self._stored(addition, prepared)
        changed = self._remembered(query, now, version, prepared, joined)
        if self._first:
            await self._store.meta.settle({FIRST_ITEM: repr(now)})
            self._first = False
        self._watcher.items(items=added, queries=int(live is None))
        candidates = len((changed or await self.query(query, now)).candidates)
        return api.PutItemsResponse(query, added, len(names) - added, candidates)

    async def _prepared(self, addition: Addition) -> Prepared:
        """Return the items to write, which fit the schema; those of a list if memory lacks them."""
        query, items = addition.query, addition.items
        live = await self._queries.get(query, addition.now)
        if not self._catalog.schema.features:
            await self._catalog.follow()  # another server may have had the first items
        before = self._catalog.schema
        begun = None if before.pair.width else addition.begun
        schema = begun or _begun(before, items)
        rows = [None] * len(items) if live is None else live.rows_of([item.id for item in items])
        own, kept = await self._rows(items, schema, live, rows)
        new: Sequence[int] = range(len(items))
        if addition.listed and live is not None and live.keys == schema.keys:
            new = _unlike(live, rows, own, schema)
        if self._fleet.size > 1 and not addition.reread and not kept.isdisjoint(new):
            self._queries.forget(query)  # another server may have changed what they keep
            addition.reread = True
            raise OutdatedError
        names = [items[at].id for at in new]
        return Prepared(live, before, schema, names, own[list(new)])

    async def _joined(self, addition: Addition, prepared: Prepared) -> Joined:
        """Return items joined with the catalog; raise if a list names withdrawn ones."""
        version = self._catalog.version
        keys, features, withdrawn = await self._catalog.joined(
            prepared.names, prepared.features, prepared.schema
        )
        if addition.listed and withdrawn.any():
            raise problems.withdrawn(
                list(compress(prepared.names, withdrawn.tolist())), everywhere=True
            )
        if self._catalog.schema is not prepared.before:  # features were changed while we read
            raise OutdatedError
        return Joined(keys, features, withdrawn, version)

    async def _stored(self, addition: Addition, prepared: Prepared) -> int:
        """Write items to the store, and return the version of the query that this makes."""
        catalog, names, live = self._catalog, prepared.names, prepared.live
        # The schema with the first items, or neither: it must not be that of rejected items.
        meta, version = catalog.settings_with(prepared.schema), catalog.version
        if live is None:
            if addition.admit is not None:
                addition.admit()
                addition.admit = None  # once
        elif addition.listed:
            reject_withdrawn(live, names, live.rows_of(names))
        stored = _new_items(names, prepared.features)
        try:
            made = await self._store.items.put(
                addition.query, stored, addition.now, meta=meta, based_on=version
            )
        except CatalogChanged:  # others had the first items: theirs decide
            await catalog.follow()
            raise OutdatedError from None
        if meta:
            catalog.wrote(version + 1)
            catalog.fix(prepared.schema)
        return made

    def _remembered(
        self, query: str, now: float, version: int, prepared: Prepared, joined: Joined
    ) -> LiveQuery | None:
        """Take the step of a write in memory; return the query, None if it must be read again."""
        changed = self._queries.wrote(query, version)
        if version % LIFE == 1:
            changed = self._queries.empty(query, joined.keys, now, version)
        if changed is None:
            return None
        if changed.keys != joined.keys:  # features were changed meanwhile
            self._queries.forget(query)
            return None
        changed.put(_new_items(prepared.names, joined.features), now)
        changed.mark(np.array(changed.rows_of(prepared.names)), joined.withdrawn)
        changed.catalog = min(changed.catalog, joined.version)  # it may have changed meanwhile
        self._queries.admit(changed)
        return changed

    async def _rows(
        self,
        items: Sequence[api.ItemIn],
        schema: FeatureSchema,
        live: LiveQuery | None,
        rows: Sequence[int | None],
    ) -> tuple[Features, set[int]]:
        """Return items' own features as stored, and which of them keep some they had before.

        `rows` are their rows in memory. An item keeps the features that it leaves out. If it is new
        and leaves out all, the catalog must have it.
        """
        bare = [at for at, item in enumerate(items) if not item.features]
        exempt = await self._exempt(items, schema, rows, bare)
        own = schema.pair.rows(items, missing_allowed=self._catalog.missing_allowed, exempt=exempt)
        if live is None or live.keys != schema.keys:
            return own, set()
        return own, _kept(items, schema.pair, live, rows, own)

    async def _exempt(
        self,
        items: Sequence[api.ItemIn],
        schema: FeatureSchema,
        rows: Sequence[int | None],
        bare: Sequence[int],
    ) -> set[str]:
        """Return the items that need no features here, among those that have none.

        They are in the query or in the catalog. If missing values are rejected, the catalog must
        have all new items, unless the features there are optional.
        """
        strict = not self._catalog.missing_allowed
        in_full = strict and not all(feature.optional for feature in schema.shared.features)
        asked = range(len(items)) if in_full else bare
        new = [items[at].id for at in asked if rows[at] is None]
        in_catalog = await self._catalog.read(new, schema)
        unknown = next((name for name in new if in_full and name not in in_catalog), None)
        if unknown is not None:
            raise Problem(
                f"item {unknown!r} is not in the catalog: PUT /v1/items first. Missing values are "
                "rejected (features.missing)",
                "items",
            )
        return {items[at].id for at in bare if rows[at] is not None or items[at].id in in_catalog}

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


async def _settled(attempt: Callable[[], Awaitable[T]]) -> T:
    """Return what an attempt returns; repeat it while others change what it is prepared from."""
    while True:
        with suppress(OutdatedError):
            return await attempt()


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


def _kept(
    items: Sequence[api.ItemIn],
    pair: FeatureKind,
    live: LiveQuery,
    rows: Sequence[int | None],
    own: Features,
) -> set[int]:
    """Fill in the features that items of a query leave out; return which items keep some."""
    kept, before = set[int](), np.full(own.shape[1], np.nan, np.float32)
    for at in pair.lacking(own):
        if rows[at] is not None:
            before[pair.columns] = live.state.features[rows[at], pair.places]
            if pair.keep(own[at], items[at], before):
                kept.add(at)
    return kept


def ids_of(items: Sequence[str | api.ItemIn]) -> list[str]:
    """Return the names in a request, each once."""
    return list(dict.fromkeys(item if isinstance(item, str) else item.id for item in items))


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
