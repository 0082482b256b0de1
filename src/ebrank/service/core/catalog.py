"""Features as this server knows them: the schema, and rows that all queries share.

The store keeps the catalog with a version that rises with every change, of a row or of the schema.
A query in memory remembers the version that it was joined with the catalog at. When the catalog has
moved on, it asks which of its items have changed since; when the schema has, it is read again. So a
change is one write, however many queries an item is in, and what another server changes is noticed
by the next write to the log, which says what version it found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ebrank.service import api
from ebrank.service.core.feature_schema import NO_FEATURES, FeatureSchema
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.settings import FeaturesSettings
from ebrank.service.store.base import Store, StoreView
from ebrank.service.store.records import CatalogCommit, NewItem
from ebrank.settings import SettingsError
from ebrank.typing import Features

SCHEMA = "features"
"""The setting of the store that holds the schema."""


class Catalog:
    """The schema, and what queries share.

    Attributes:
        schema: the features that items have.
        version: of the catalog that memory follows.
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
        self._found = version
        self.schema = schema
        self.version = version
        self.missing_allowed = (settings or FeaturesSettings()).missing != "reject"

    @classmethod
    async def open(cls, store: Store, settings: FeaturesSettings) -> Catalog:
        """Return the catalog of a store."""
        version = await store.catalog.version()  # first: the schema may be newer, never older
        text = await store.meta.get(SCHEMA)
        schema = _declared(text, settings)
        return cls(store, settings, schema, stored=text == schema.to_json(), version=version)

    # --- following the store -----------------------------------------------------------------

    def found(self, version: int) -> None:
        """Note the version that a write found: another server may have changed the catalog."""
        self._found = version

    @property
    def behind(self) -> bool:
        """Whether somebody else has changed the catalog, or the schema."""
        return self._found != self.version

    async def follow(self) -> None:
        """Take over what others have changed."""
        version = await self._store.catalog.version()
        text = await self._store.meta.get(SCHEMA)
        if text is not None and text != self.schema.to_json():
            self.schema = FeatureSchema.from_json(text)
        self.version = self._found = version

    def settings_with(self, schema: FeatureSchema) -> dict[str, str]:
        """Return what the store must keep with the first rows under a schema."""
        known = self._stored and schema == self.schema
        return {} if known else {SCHEMA: schema.to_json()}

    def fix(self, schema: FeatureSchema) -> None:
        """Note that the store has kept a schema."""
        self._stored = True
        if schema != self.schema:
            self.schema = schema

    # --- rows --------------------------------------------------------------------------------

    async def joined(self, names: Sequence[str], pair: Features) -> Features:
        """Return the features of items as they are now, given their own rows."""
        rows = await self._store.catalog.read(names) if self.schema.shared else {}
        return self.schema.current(pair, self._shared(names, rows))

    async def changes(self, names: Sequence[str], since: int) -> tuple[list[str], Features]:
        """Return items whose shared features changed after a version, and these features."""
        if not self.schema.shared:
            return [], np.zeros((0, 0), np.float32)
        rows = await self._store.catalog.read(names, since)
        changed = list(rows)
        nothing = np.zeros((len(changed), 0), np.float32)
        now = self.schema.current(nothing, self._shared(changed, rows))
        shared = [place for place, feature in enumerate(self.schema.features) if feature.shared]
        return changed, now[:, shared]

    async def known(self, names: Sequence[str]) -> set[str]:
        """Return those of some items that are in the catalog."""
        if not names or not self.schema.shared:
            return set()
        rows = await self._store.catalog.read(names)
        return {name for name, row in rows.items() if row is not None}

    def _shared(self, names: Sequence[str], rows: Mapping[str, Features | None]) -> Features:
        width = self.schema.width(shared=True)
        shared = np.full((len(names), width), np.nan, np.float32)
        for place, name in enumerate(names):
            row = rows.get(name)
            if row is not None:
                shared[place, : len(row)] = row[:width]
        return shared

    # --- changes -----------------------------------------------------------------------------

    async def put(self, items: Sequence[api.ItemIn], now: float) -> int:
        """Add items or change their shared features, all or none; return how many are other.

        On disk after the next flush.
        """
        if not items:
            return 0
        schema = self.schema.begun_shared(items[0])
        features = schema.rows(items, missing_allowed=self.missing_allowed, shared=True)
        rows = [
            NewItem(item.id, tuple(row)) for item, row in zip(items, features.tolist(), strict=True)
        ]
        meta = self.settings_with(schema)
        commit = await self._store.catalog.put(rows, now, meta=meta)
        self.fix(schema)
        self._wrote(commit)
        return commit.changed

    async def remove(self, names: Sequence[str], now: float) -> int:
        """Forget shared features of items; return how many had any."""
        commit = await self._store.catalog.remove(names, now)
        self._wrote(commit)
        return commit.changed

    async def change(self, schema: FeatureSchema, now: float) -> None:
        """Let items have other features; on disk after the next flush."""
        commit = await self._store.catalog.put([], now, meta={SCHEMA: schema.to_json()})
        self.fix(schema)
        self._wrote(commit)

    def _wrote(self, commit: CatalogCommit) -> None:
        self._found = commit.version
        if commit.version == self.version + 1:  # nobody else has written
            self.version = commit.version

    async def item(self, name: str) -> api.CatalogItem:
        """Return the shared features of an item."""
        rows = await self._store.catalog.read([name])
        if rows.get(name) is None:
            raise NotFound(f"item {name!r} is not in the catalog", "item")
        _, [row] = await self.changes([name], 0)
        values = (None if np.isnan(value) else float(value) for value in row)
        names = (str(feature.name) for feature in self.schema.shared)
        return api.CatalogItem(name, dict(zip(names, values, strict=True)))


async def stored_schema(store: StoreView) -> FeatureSchema:
    """Return the schema that a store holds; without features, if it has none yet."""
    text = await store.meta.get(SCHEMA)
    return NO_FEATURES if text is None else FeatureSchema.from_json(text)


def _declared(stored: str | None, settings: FeaturesSettings) -> FeatureSchema:
    """Return the schema that the data, or else the settings, fix."""
    names, shared = settings.names, settings.shared
    try:
        if stored is None:
            return FeatureSchema.named(names or (), shared or ())
        schema = FeatureSchema.from_json(stored)
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
                f"features.{setting}: the store's items have other features ({schema.text}). "
                "Leave the setting out; `ebrank features` shows and changes what the store has"
            )
    return schema
