"""`ebrank import evidence.parquet`: a store that starts with evidence from logs.

The counts become the snapshot of a store without a log, as if all events had been rolled up. If
there are features, a first prior is trained at once.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace

import numpy as np

from ebrank.addons.logs import Evidence, read_evidence
from ebrank.service.core.agreed_settings import BEHAVIORS, QUERY_NAMES
from ebrank.service.core.catalog import SCHEMA
from ebrank.service.core.feature_schema import FeatureSchema
from ebrank.service.core.items import FIRST_ITEM
from ebrank.service.core.queries import normalized
from ebrank.service.core.resources import Resources
from ebrank.service.learning.fitting import in_thread
from ebrank.service.learning.training import ModelVersions, job
from ebrank.service.settings import Settings
from ebrank.service.store import Store, open
from ebrank.service.store.base import Progress
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem, QueryState

QUERIES_AT_ONCE = 100
UNTRAINED = "not trained: there are no features"


@dataclass(frozen=True)
class Imported:
    """What came in.

    Attributes:
        queries: how many.
        items: pairs of a query and an item with history.
        new: items without history: candidates, or only in the catalog.
        impressions: how many.
        behaviors: how many impressions led to each behavior, by name.
        dropped: pairs left out because they have no features.
        prior: what became of training.
        live: whether a prior was trained, and ranks.
    """

    queries: int
    items: int
    new: int
    impressions: int
    behaviors: dict[str, int]
    dropped: int
    prior: str
    live: bool


async def import_evidence(
    evidence: Evidence,
    url: str,
    *,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Make a new store from evidence.

    With features its items are candidates, and a prior is trained. Without, they are withdrawn, and
    come back with their history when they are put with features. Features of items alone, whatever
    the query, go to the catalog, with those of items that nobody has seen.

    Args:
        evidence: what `read_evidence` returns.
        url: where the store will be; it must not exist.
        settings: of the service that will use it, by default the usual ones. The behaviors are
            those that were counted; `store.normalize_queries` says whether spellings of a query
            are one.
        progress: called with how many queries are done.
    """
    settings = settings or Settings()
    if settings.store.normalize_queries:
        evidence = evidence.renamed(normalized)
    async with open(url, "new") as store:
        await fill(store, evidence, time.time(), progress)
        names = "normalized" if settings.store.normalize_queries else "literal"
        await store.meta.set({QUERY_NAMES: names})
        prior = UNTRAINED
        if evidence.features is not None:
            prior = await _trained(store, counting(settings, evidence))
        live = bool(await store.models.active())
        await store.flush()
    stats = evidence.stats
    seen = stats.shown > 0
    totals = stats.counts.sum(axis=(0, 2), dtype=np.int64).tolist()
    return Imported(
        queries=len(evidence.queries),
        items=int(seen.sum()),
        new=int((~seen).sum()) + len(evidence.unseen),
        impressions=totals[0],
        behaviors=dict(zip(stats.behaviors.names, totals[1:], strict=True)),
        dropped=evidence.dropped,
        prior=prior,
        live=live,
    )


def counting(settings: Settings, evidence: Evidence) -> Settings:
    """Return the settings with the behaviors that evidence counts."""
    behaviors = evidence.stats.behaviors
    declared = tuple(f"{each.name}={each.weight!r}" for each in behaviors.all)
    events = replace(settings.events, behaviors=declared, negative=behaviors.negative)
    return replace(settings, events=events)


async def in_memory(
    path: str, features: str | None, settings: Settings
) -> tuple[MemoryStore, Settings]:
    """Return a store of a file of evidence, with settings; without features, items are alike."""
    evidence = read_evidence(path, features=features, missing="drop")
    if evidence.features is None:
        constant = np.ones((len(evidence), 1), np.float32)
        evidence = replace(evidence, features=constant, feature_names=("constant",))
    store = MemoryStore()
    await fill(store, evidence, now=0.0)
    return store, counting(settings, evidence)


async def _trained(store: Store, settings: Settings) -> str:
    """Train a first prior, and return what became of it."""
    resources = await Resources.open(store, settings, time.time, time.monotonic)
    versions = await ModelVersions.open(resources)
    return await versions.adopt(await in_thread(store, job(settings, active=0)), 0)


async def fill(
    store: Store, evidence: Evidence, now: float, progress: Progress | None = None
) -> None:
    """Put evidence into an empty store."""
    last = now if evidence.last_time is None else evidence.last_time
    queries = list(evidence.rows())
    for done in range(0, len(queries), QUERIES_AT_ONCE):
        some = queries[done : done + QUERIES_AT_ONCE]
        await store.items.restore([_state(evidence, *each, last) for each in some], last)
        if progress is not None:
            progress(done, len(queries))
    if evidence.shared:
        await store.catalog.put(_catalog(evidence), last)
    behaviors = json.dumps(list(evidence.stats.behaviors.names))
    await store.meta.set({BEHAVIORS: behaviors} | _schema(evidence, last))


def _catalog(evidence: Evidence) -> list[NewItem]:
    """Return all items with the features that queries share."""
    features = evidence.given_features()
    rows = {item: features[row] for row, item in enumerate(evidence.items)}
    rows.update(evidence.unseen)
    return [NewItem(item, tuple(row.tolist())) for item, row in rows.items()]


def _state(evidence: Evidence, query: str, rows: slice, last: float) -> QueryState:
    counts = evidence.stats.counts[rows]
    shown, recorded = counts[:, 0].any(axis=1), evidence.first_shown[rows]
    first = np.where(shown, np.where(np.isnan(recorded), last, recorded), np.nan)
    items, features = evidence.items[rows], None if evidence.shared else evidence.features
    return QueryState(
        query=query,
        ids=items,
        features=np.zeros((len(items), 0), np.float32) if features is None else features[rows],
        counts=np.ascontiguousarray(counts),
        entered=np.where(shown, first, last),
        first_shown=first,
        active=np.full(len(items), evidence.features is not None),
    )


def _schema(evidence: Evidence, last: float) -> dict[str, str]:
    if evidence.features is None:
        return {}
    schema = FeatureSchema().with_features(*evidence.feature_names, shared=evidence.shared)
    began = float(np.nanmin(np.append(evidence.first_shown, last)))
    return {SCHEMA: schema.to_json(), FIRST_ITEM: repr(began)}
