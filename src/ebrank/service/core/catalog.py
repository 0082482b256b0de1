"""Features as this server knows them: the schema, and rows that all queries share.

The store keeps the catalog with a version that grows with every change of a row or of the schema. A
query in memory remembers the version of the catalog that it was joined with. When the catalog has
moved on, it asks which of its items have changed since; when the schema has changed, it is read
again. So a change is one write, no matter how many queries have the item, and the next write to the
log, which returns the version it found, reveals what another server changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ebrank.service import api
from ebrank.service.core.background import Turns
from ebrank.service.core.feature_schema import NO_FEATURES, FeatureSchema
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.settings import FeaturesSettings
from ebrank.service.store.base import CatalogChanged, Store, StoreView
from ebrank.service.store.records import CatalogCommit, NewItem
from ebrank.settings import SettingsError
from ebrank.typing import Features

SCHEMA = "features"
"""The setting of the store that holds the schema."""
UNKNOWN = -1
"""No version of anything."""


class Catalog:
    """The schema, and what queries share.

    Attributes:
        schema: the features that items have.
        version: of the catalog in memory.
        found: the version that the latest write found; another server may have changed it.
        missing_allowed: whether items may lack features.
    """

    def __init__(
        self,
        store: Store,
        settings: FeaturesSettings | None = None,
        schema: FeatureSchema = NO_FEATURES,
        *,
        stored: bool = True,
        version: int = 0,
    ) -> None:
        """Take what `open` has read."""
        self._store = store
        self._stored = stored
        self.schema = schema
        self.version = self.found = version
        self.missing_allowed = (settings or FeaturesSettings()).missing != "reject"

    @classmethod
    async def open(cls, store: Store, settings: FeaturesSettings) -> Catalog:
        """Return the catalog of a store."""
        version = await store.catalog.version()  # first: the schema may be newer, never older
        text = await store.meta.get(SCHEMA)
        schema = _declared(text, settings)
        return cls(store, settings, schema, stored=text == schema.to_json(), version=version)

    # --- following the store -----------------------------------------------------------------

    async def follow(self) -> None:
        """Take over what other servers have changed."""
        version = await self._store.catalog.version()
        text = await self._store.meta.get(SCHEMA)
        if text is not None and text != self.schema.to_json():
            self.schema = FeatureSchema.from_json(text)
        self._stored = self._stored or text is not None
        self.version = self.found = version

    def settings_with(self, schema: FeatureSchema) -> dict[str, str]:
        """Return what the store must keep with the first rows of a schema."""
        known = self._stored and schema == self.schema
        return {} if known else {SCHEMA: schema.to_json()}

    def fix(self, schema: FeatureSchema) -> None:
        """Record that the store has kept a schema."""
        self._stored = True
        if schema != self.schema:
            self.schema = schema

    # --- rows --------------------------------------------------------------------------------

    async def joined(
        self, names: Sequence[str], pair: Features, schema: FeatureSchema | None = None
    ) -> tuple[Sequence[str], Features]:
        """Return the keys and features of items as they are now, given their own rows.

        The schema is that of the store, unless it is about to have another one.
        """
        now = schema or self.schema
        if not now.features:  # nobody has declared any: they are known by their columns
            now = FeatureSchema.positions(pair.shape[1])
        rows = await self.read(names, now)
        return now.keys, now.current(pair, shared_rows(now, names, rows))

    async def changes(
        self, names: Sequence[str], since: int
    ) -> tuple[list[str], list[int], Features]:
        """Return the changes after a version: items, places of features, and their values."""
        schema = self.schema
        places = [place for place, feature in enumerate(schema.features) if feature.shared]
        rows = await self._store.catalog.read(names, since) if places else {}
        changed = list(rows)
        nothing = np.zeros((len(changed), 0), np.float32)
        values = schema.current(nothing, shared_rows(schema, changed, rows))
        return changed, places, values[:, places]

    async def read(
        self, names: Sequence[str], schema: FeatureSchema | None = None
    ) -> dict[str, Features]:
        """Return the shared rows of the items that the catalog has."""
        if not names or not (schema or self.schema).shared:
            return {}
        rows = await self._store.catalog.read(names)
        return {name: row for name, row in rows.items() if row is not None}

    # --- changes -----------------------------------------------------------------------------

    async def put(self, items: Sequence[api.ItemIn], now: float) -> int:
        """Add items or change their shared features, all or none; return how many changed.

        On disk after the next flush.
        """
        if not items:
            return 0
        if self.found != self.version:
            await self.follow()
        schema = self.schema.begun_shared(items[0])
        features = schema.rows(items, missing_allowed=self.missing_allowed, shared=True)
        rows = [
            NewItem(item.id, tuple(row)) for item, row in zip(items, features.tolist(), strict=True)
        ]
        meta = self.settings_with(schema)
        try:
            commit = await self._store.catalog.put(rows, now, meta=meta, known=self.version)
        except CatalogChanged:  # others had the first items: theirs decide
            await self.follow()
            return await self.put(items, now)
        self.fix(schema)
        self._wrote(commit)
        return commit.changed

    async def put_many(
        self, items: Sequence[api.ItemIn], clock: Callable[[], float], turns: Turns
    ) -> int:
        """Do the same with many items, a portion at a time.

        If one of them is wrong, none is stored. If the store fails midway, or the process ends, the
        portions before that are there; the same call again stores all.
        """
        schema = self.schema.begun_shared(items[0])
        portions = [
            items[begin : begin + api.ITEMS_AT_ONCE]
            for begin in range(0, len(items), api.ITEMS_AT_ONCE)
        ]
        changed = 0
        async with turns:
            for portion in portions:
                schema.rows(portion, missing_allowed=self.missing_allowed, shared=True)
                await turns.next()
            for portion in portions:
                changed += await self.put(portion, clock())
                await turns.next()
        return changed

    def reasons(self, items: Sequence[api.ItemIn]) -> list[str | None]:
        """Return why each item cannot be put; None if it can."""
        schema, reasons = self.schema, list[str | None]()
        for item in items:
            try:
                begun = schema.begun_shared(item)
                begun.rows([item], missing_allowed=self.missing_allowed, shared=True)
                schema = begun
                reasons.append(None)
            except Problem as problem:
                reasons.append(str(problem))
        return reasons

    async def remove(self, names: Sequence[str], now: float) -> int:
        """Remove shared features of items; return how many had any."""
        commit = await self._store.catalog.remove(names, now)
        self._wrote(commit)
        return commit.changed

    async def change(self, schema: FeatureSchema, now: float) -> None:
        """Change the features that items have; on disk after the next flush."""
        meta = {SCHEMA: schema.to_json()}
        try:
            commit = await self._store.catalog.put([], now, meta=meta, known=self.version)
        except CatalogChanged:  # the next request sees what they are now
            self.found = UNKNOWN
            raise
        self.fix(schema)
        self._wrote(commit)

    def advanced(self, known: int) -> None:
        """Record that a write has made the next version."""
        self._wrote(CatalogCommit(known + 1, 0))

    def _wrote(self, commit: CatalogCommit) -> None:
        self.found = commit.version
        if commit.version == self.version + 1:  # nobody else has written
            self.version = commit.version

    async def item(self, name: str) -> api.CatalogItem:
        """Return the shared features of an item."""
        rows = await self.read([name])
        if not rows:
            raise NotFound(f"item {name!r} is not in the catalog", "item")
        names = [str(feature.name) for feature in self.schema.shared]
        columns = [feature.column for feature in self.schema.shared]
        [row] = shared_rows(self.schema, [name], rows)[:, columns].tolist()
        values = [None if math.isnan(value) else value for value in row]
        return api.CatalogItem(name, dict(zip(names, values, strict=True)))


def shared_rows(
    schema: FeatureSchema, names: Sequence[str], rows: Mapping[str, Features | None]
) -> Features:
    """Return the shared rows of items as a matrix, NaN for items not in the catalog."""
    width = schema.width(shared=True)
    shared = np.full((len(names), width), np.nan, np.float32)
    for place, name in enumerate(names):
        row = rows.get(name)
        if row is not None:
            shared[place, : len(row)] = row[:width]
    return shared


async def stored_schema(store: StoreView) -> FeatureSchema:
    """Return the schema of a store; without features, if it has none yet."""
    text = await store.meta.get(SCHEMA)
    return NO_FEATURES if text is None else FeatureSchema.from_json(text)


def _declared(stored: str | None, settings: FeaturesSettings) -> FeatureSchema:
    """Return the schema that the data, or else the settings, determine."""
    names, shared = settings.names, settings.shared
    try:
        schema = NO_FEATURES if stored is None else FeatureSchema.from_json(stored)
        if not schema.width(shared=False):
            schema = schema.with_features(names or ())
        if not schema.width(shared=True):
            schema = schema.with_features(shared or (), shared=True)
        nameless = [feature for feature in schema.pair if feature.name is None]
        if names is not None and nameless and len(names) == len(schema.pair):
            schema = schema.with_names(names)
    except Problem as problem:
        raise SettingsError(f"features: {problem}") from None
    for setting, wanted, there in (
        ("names", names, schema.pair),
        ("shared", shared, schema.shared),
    ):
        if wanted is not None and list(wanted) != [feature.name for feature in there]:
            raise SettingsError(
                f"features.{setting}: the store's items have different features "
                f"({schema.text}). Remove the setting, and use `ebrank features` to show or "
                "change them"
            )
    return schema
