"""Adding, removing and renaming features: what that would change, and doing it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ebrank.service import api
from ebrank.service.core.catalog import Catalog
from ebrank.service.core.feature_schema import FeatureColumn, FeatureSchema
from ebrank.service.core.models import features_of
from ebrank.service.store.base import Store
from ebrank.service.store.records import FeatureTally


async def features_view(store: Store, schema: FeatureSchema) -> api.FeaturesResponse:
    """Return the features of items, how many items lack each, and its weight in the model."""
    return (await _survey(store)).response(schema, [], dry_run=False)


async def change_features(
    store: Store, catalog: Catalog, request: api.ChangeFeaturesRequest, now: float
) -> api.FeaturesResponse:
    """Change the features that items have, or say what would change; on disk after a flush.

    Stored rows and models are not touched: models find their features by their keys.
    """
    survey = await _survey(store)
    while True:
        await catalog.follow()
        schema, changes = _changed(catalog.schema, request, survey)
        if request.dry_run or schema == catalog.schema:
            break
        if await catalog.store([], schema, now, catalog.version) is not None:
            break  # otherwise a row was written in between: start from what it is now
    return survey.response(schema, changes, dry_run=request.dry_run)


def _changed(
    schema: FeatureSchema, request: api.ChangeFeaturesRequest, survey: _Survey
) -> tuple[FeatureSchema, list[str]]:
    """Return the schema that a request makes of another, and its changes in words."""
    changes = list[str]()
    if request.name:
        schema = schema.with_names(request.name)
        changes.append(f"name {', '.join(request.name)}: nothing else changes")
    for old, new in request.rename.items():
        schema = schema.renamed(old, new)
        changes.append(f"rename {old} to {new}: nothing else changes")
    for name in request.remove:
        changes.append(f"remove {name}: {survey.use(schema.find(name))}")
        schema = schema.without(name)
    for feature in request.add:
        schema = schema.with_features(feature.name, shared=feature.shared, optional=True)
        added = schema.find(feature.name)
        kind = " (shared)" if feature.shared else ""
        changes.append(f"add {feature.name}{kind}: {survey.lack(added)}")
    for name in request.require:
        schema = schema.requiring(name)
        lack = survey.lack(schema.find(name))
        changes.append(f"require {name}: features.missing applies to it; {lack}")
    return schema, changes


@dataclass(frozen=True)
class _Survey:
    """The features in a store's rows and in its active model."""

    model: int
    weights: Mapping[str, float | None]
    pair: FeatureTally
    shared: FeatureTally

    def response(
        self, schema: FeatureSchema, changes: list[str], *, dry_run: bool
    ) -> api.FeaturesResponse:
        """Return it in terms of a schema."""
        gone = [feature for feature in schema.removed if feature.key in self.weights]
        return api.FeaturesResponse(
            self.model,
            [self.view(feature) for feature in schema.features],
            [self.view(feature) for feature in gone],
            changes,
            dry_run,
        )

    def view(self, feature: FeatureColumn) -> api.FeatureOut:
        """Return how many items have and lack a feature."""
        tally = self.shared if feature.shared else self.pair
        given = tally.given[feature.column] if feature.column < len(tally.given) else 0
        weight = self.weights.get(feature.key)
        return api.FeatureOut(
            feature.name,
            feature.shared,
            not feature.optional,
            tally.rows,
            tally.rows - given,
            weight,
        )

    def lack(self, feature: FeatureColumn) -> str:
        """Return how many items lack a feature, in words."""
        kind = "of the catalog" if feature.shared else "of queries"
        return f"{self.view(feature).lacking:,} items {kind} lack it until they are put again"

    def use(self, feature: FeatureColumn) -> str:
        """Return how the active model uses a feature, in words."""
        if feature.key not in self.weights:
            return f"model {self.model} does not use it"
        weight = self.weights[feature.key]
        size = "uses it" if weight is None else f"has a weight of {weight:.4g} for it"
        return f"model {self.model} {size}; it counts as missing there until the next fit"


async def _survey(store: Store) -> _Survey:
    version = await store.models.active()
    document = await store.models.document(version) if version else None
    keys = await features_of(store, version)
    weights: dict[str, float | None] = dict.fromkeys(keys)
    state = None if document is None else json.loads(document)["state"]
    values = [] if state is None else state.get("weights", {}).get("values", [])
    if len(values) == len(keys):
        weights = dict(zip(keys, values, strict=True))
    return _Survey(version, weights, await store.items.tally(), await store.catalog.tally())
