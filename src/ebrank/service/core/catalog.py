"""Features as this server knows them: the schema, and rows that all queries share.

The store keeps the catalog with a version that grows with every change of a row or of the schema. A
query in memory remembers the version of the catalog that it was joined with. When the catalog has
moved on, it asks which of its items have changed since; when the schema has changed, it is read
again. So a change is one write, no matter how many queries have the item, and the next write to the
log, which returns the version it found, reveals what another server changed.

Many items come as lines of JSON, each validated separately:

>>> import asyncio
>>> from ebrank.service.store.memory import MemoryStore
>>> async def pieces() -> AsyncIterator[bytes]:
...     yield b'{"id": "sencha", "features": {"price": 0.4}}\\n{"id": "ass'
...     yield b'am", "features": {"price": 0.2}}\\n{"id": "oolong", "features": {"prize": 0.9}}\\n'
>>> answer = asyncio.run(load(Catalog(MemoryStore()), pieces(), clock=lambda: 1.0))
>>> answer.changed, answer.errors
(2, [LineError(line=3, reason="item 'oolong' has an unknown feature 'prize' (known: price)...")])
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from ebrank.environment.config import SettingsError
from ebrank.service import api
from ebrank.service.core.background import Turns
from ebrank.service.core.feature_schema import NO_FEATURES, FeatureSchema
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.settings import FeaturesSettings
from ebrank.service.store.base import CatalogChanged, Store
from ebrank.service.store.records import NewItem
from ebrank.typing import Bools, Features

SCHEMA = "features"
"""The setting of the store that holds the schema."""
AT_ONCE = 100
"""Lines per transaction: two milliseconds, during which nobody else is served."""
LONGEST_LINE = 2**20
MOST_ERRORS = 100
"""Errors that the response lists; all of them are counted."""

Line: TypeAlias = tuple[int, bytes]
"""A line with its number, from 1."""

_read_item = msgspec.json.Decoder(api.ItemIn).decode


class Changes(NamedTuple):
    """What has changed in the catalog.

    Attributes:
        names: the items.
        places: of shared features among all.
        features: their values, a row for each item.
        withdrawn: which of the items are withdrawn from all queries.
    """

    names: Sequence[str]
    places: Sequence[int]
    features: Features
    withdrawn: Bools


class Catalog:
    """The schema, and what queries share.

    Attributes:
        schema: the features that items have.
        version: of the catalog in memory.
        stored: the version that the latest write found; another server may have changed it.
        missing_allowed: whether items may lack features.
    """

    def __init__(
        self,
        store: Store,
        settings: FeaturesSettings | None = None,
        schema: FeatureSchema = NO_FEATURES,
        *,
        kept: bool = True,
        version: int = 0,
    ) -> None:
        """Take what `open` has read."""
        self._store = store
        self._kept = kept
        self.schema = schema
        self.version = self.stored = version
        self.missing_allowed = (settings or FeaturesSettings()).missing != "reject"

    @classmethod
    async def open(cls, store: Store, settings: FeaturesSettings) -> Catalog:
        """Return the catalog of a store."""
        version = await store.catalog.version()  # first: the schema may be newer, never older
        text = await store.meta.get(SCHEMA)
        schema = _declared(text, settings)
        return cls(store, settings, schema, kept=text == schema.to_json(), version=version)

    # --- following the store -----------------------------------------------------------------

    async def follow(self) -> None:
        """Take over what other servers have changed."""
        version = await self._store.catalog.version()
        text = await self._store.meta.get(SCHEMA)
        if text is not None and text != self.schema.to_json():
            self.schema = FeatureSchema.from_json(text)
        self._kept = self._kept or text is not None
        self.version = self.stored = version

    def settings_with(self, schema: FeatureSchema) -> dict[str, str]:
        """Return the settings to store together with the first rows of a schema."""
        kept = self._kept and schema == self.schema
        return {} if kept else {SCHEMA: schema.to_json()}

    def fix(self, schema: FeatureSchema) -> None:
        """Record that the store has kept a schema."""
        self._kept = True
        if schema != self.schema:
            self.schema = schema

    # --- rows --------------------------------------------------------------------------------

    async def joined(
        self, names: Sequence[str], pair: Features, schema: FeatureSchema | None = None
    ) -> tuple[Sequence[str], Features, Bools]:
        """Return the keys and values of items' features now, and which the catalog has withdrawn.

        Their own rows are given. The schema is that of the store, unless it is about to have
        another one.
        """
        now = (schema or self.schema).or_positions(pair.shape[1])
        return now.keys, *now.joined(names, pair, await self.read(names, now))

    async def changes(self, names: Sequence[str], since: int) -> Changes:
        """Return what has changed after a version."""
        schema = self.schema
        rows = await self._store.catalog.read(names, since) if schema.shared.width else {}
        values, withdrawn = schema.joined([*rows], np.zeros((len(rows), 0), np.float32), rows)
        places = schema.shared.places
        return Changes([*rows], places, values[:, places], withdrawn)

    async def read(
        self, names: Sequence[str], schema: FeatureSchema | None = None
    ) -> dict[str, Features]:
        """Return the shared rows of the items that the catalog has."""
        if not names or not (schema or self.schema).shared.width:
            return {}
        return await self._store.catalog.read(names)

    # --- changes -----------------------------------------------------------------------------

    async def put(self, items: Sequence[api.ItemIn], now: float) -> int:
        """Add items or change their shared features, all or none; return how many changed.

        On disk after the next flush.
        """
        if not items:
            return 0
        if self.stored != self.version:
            await self.follow()
        before, version = self.schema, self.version
        schema = before.begun_shared(items[0])
        features = schema.shared.rows(items, missing_allowed=self.missing_allowed)
        lacking = {items[at].id: at for at in schema.shared.lacking(features)}
        stored = await self.read(list(lacking), schema)
        kept = [
            schema.shared.keep(features[lacking[name]], items[lacking[name]], row)
            for name, row in stored.items()
        ]
        if self.schema is not before:  # features were changed while we read
            return await self.put(items, now)
        rows = [
            NewItem(item.id, _ended(row))
            for item, row in zip(items, features.tolist(), strict=True)
        ]
        depends = any(kept) or self.settings_with(schema)
        changed = await self.store(rows, schema, now, version if depends else None)
        return await self.put(items, now) if changed is None else changed

    async def store(
        self, rows: Sequence[NewItem], schema: FeatureSchema, now: float, version: int | None
    ) -> int | None:
        """Store rows, and return how many changed; on disk after the next flush.

        If they depend on a version of the catalog, with their schema; None if others have changed
        it.
        """
        meta = {} if version is None else {SCHEMA: schema.to_json()}
        try:
            commit = await self._store.catalog.put(rows, now, meta=meta, based_on=version)
        except CatalogChanged:
            await self.follow()
            return None
        if meta:
            self.fix(schema)
        self.wrote(commit.version)
        return commit.changed

    async def withdraw(self, name: str, now: float) -> bool:
        """Withdraw an item from all queries; return whether it was not yet.

        Its features and its history stay. On disk after the next flush.
        """
        if self.stored != self.version:
            await self.follow()
        version = self.version
        row = await self._row(name)
        if self.schema.withdrawn(row):
            return False
        schema, marked = self.schema.marked(row)
        changed = await self.store([NewItem(name, tuple(marked.tolist()))], schema, now, version)
        return await self.withdraw(name, now) if changed is None else True

    async def put_many(
        self, items: Sequence[api.ItemIn], clock: Callable[[], float], turns: Turns
    ) -> int:
        """Do the same; if there are many items, a portion at a time.

        If one of them is wrong, none is stored. If the store fails midway, or the process ends, the
        portions before that are there; the same call again stores all.
        """
        if len(items) <= api.ITEMS_AT_ONCE:
            return await self.put(items, clock())
        schema = self.schema.begun_shared(items[0])
        changed = 0
        async with turns:
            async for portion in turns.portions(items, api.ITEMS_AT_ONCE):
                schema.shared.rows(portion, missing_allowed=self.missing_allowed)
            async for portion in turns.portions(items, api.ITEMS_AT_ONCE):
                changed += await self.put(portion, clock())
        return changed

    def refused(self, items: Mapping[int, api.ItemIn]) -> dict[int, str]:
        """Return why some of numbered items cannot be put."""
        schema, refused = self.schema, dict[int, str]()
        for number, item in items.items():
            try:
                begun = schema.begun_shared(item)
                begun.shared.rows([item], missing_allowed=self.missing_allowed)
                schema = begun
            except Problem as problem:
                refused[number] = str(problem)
        return refused

    def wrote(self, version: int) -> None:
        """Record that a write of this server has made a version."""
        self.stored = version
        if version == self.version + 1:  # nobody else has written
            self.version = version

    async def _row(self, name: str) -> Features:
        rows = await self.read([name])
        if name not in rows:
            raise NotFound(f"item {name!r} is not in the catalog", "item")
        return rows[name]

    async def item(self, name: str) -> api.CatalogItem:
        """Return an item."""
        await self.follow()
        return self._out(name, await self._row(name))

    async def page(self, request: api.CatalogRequest) -> api.CatalogResponse:
        """Return items by name."""
        await self.follow()
        rows = await self._store.catalog.find(request.cursor or None, request.limit + 1)
        listed = [self._out(name, row) for name, row in rows[: request.limit]]
        more = len(rows) > request.limit
        return api.CatalogResponse(listed, listed[-1].id if more else None)

    def _out(self, name: str, row: Features) -> api.CatalogItem:
        """Return an item in the form of a response."""
        schema = self.schema
        nothing = np.zeros((1, 0), np.float32)
        [values], [withdrawn] = schema.joined([name], nothing, {name: row})
        shared = schema.shared
        features = {
            str(feature): None if math.isnan(value) else value
            for feature, value in zip(shared.names, values[shared.places].tolist(), strict=True)
        }
        return api.CatalogItem(name, features, bool(withdrawn))


def _ended(row: list[float]) -> tuple[float, ...]:
    """Strip trailing missing values: adding columns must not change a stored row."""
    while row and math.isnan(row[-1]):
        row.pop()
    return tuple(row)


async def stored_schema(store: Store) -> FeatureSchema:
    """Return the schema of a store; without features, if it has none yet."""
    return FeatureSchema.from_json(await store.meta.get(SCHEMA))


def _declared(stored: str | None, settings: FeaturesSettings) -> FeatureSchema:
    """Return the schema that the data, or else the settings, determine."""
    names, shared = settings.names, settings.shared
    try:
        schema = FeatureSchema.from_json(stored)
        if not schema.pair.width:
            schema = schema.with_features(*names or ())
        if not schema.shared.width:
            schema = schema.with_features(*shared or (), shared=True)
        there = schema.pair.names
        if names is not None and None in there and len(names) == len(there):
            schema = schema.with_names(names)
    except Problem as problem:
        raise SettingsError(f"features: {problem}") from None
    for setting, wanted, kind in (("names", names, schema.pair), ("shared", shared, schema.shared)):
        if wanted is not None and list(wanted) != kind.names:
            raise SettingsError(
                f"features.{setting}: the store's items have different features "
                f"({schema.text}). Remove the setting, and use `ebrank features` to show or "
                "change them"
            )
    return schema


async def load(
    catalog: Catalog, pieces: AsyncIterator[bytes], clock: Callable[[], float]
) -> api.BulkResponse:
    """Add items or change their shared features; on disk after the next flush.

    If it fails midway, earlier lines are stored; sent again, they change nothing.

    Raises:
        Problem: if a line is too long to be read.
    """
    count = changed = rejected = 0
    errors: list[api.LineError] = []
    async for lines in _batches(pieces):
        stored, refused = await _put_lines(catalog, lines, clock())
        count, changed, rejected = count + len(lines), changed + stored, rejected + len(refused)
        errors += [api.LineError(number, refused[number]) for number in sorted(refused)]
        del errors[MOST_ERRORS:]
        await asyncio.sleep(0)  # a turn for others
    return api.BulkResponse(count, changed, count - changed - rejected, rejected, errors)


async def _batches(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[Line]]:
    """Yield the non-empty lines of a text that comes in pieces, some at a time."""
    number, rest = 1, b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for begin in range(0, len(whole), AT_ONCE):
            numbered = enumerate(whole[begin : begin + AT_ONCE], number + begin)
            yield [(at, line) for at, line in numbered if line.strip()]
        number += len(whole)
        if len(rest) > LONGEST_LINE:
            raise Problem(f"line {number} is longer than {LONGEST_LINE:,} bytes")
    if rest.strip():
        yield [(number, rest)]


async def _put_lines(
    catalog: Catalog, lines: Sequence[Line], now: float
) -> tuple[int, dict[int, str]]:
    """Return how many items of some lines changed, and why others were rejected."""
    items: dict[int, api.ItemIn] = {}
    refused: dict[int, str] = {}
    for number, line in lines:
        try:
            items[number] = _read_item(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            refused[number] = str(problem)
    try:
        return await catalog.put(list(items.values()), now), refused
    except Problem:
        refused |= catalog.refused(items)
        good = [item for number, item in items.items() if number not in refused]
        return await catalog.put(good, now), refused
