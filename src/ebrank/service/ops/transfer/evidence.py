"""`ebrank import evidence.parquet`: a store that starts with evidence from logs.

The counts become the snapshot of a store without a log, as if all events had been rolled up.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np

from ebrank.logs import Evidence
from ebrank.service.core.catalog import SCHEMA
from ebrank.service.core.feature_schema import FeatureSchema
from ebrank.service.core.fixed_settings import BEHAVIORS, QUERY_NAMES
from ebrank.service.core.items import FIRST_ITEM
from ebrank.service.core.queries import normalized
from ebrank.service.store import Store, open
from ebrank.service.store.base import Progress
from ebrank.service.store.records import QueryState

QUERIES_AT_ONCE = 100


async def import_evidence(
    evidence: Evidence,
    url: str,
    *,
    normalize: bool = True,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.time,
) -> None:
    """Make a new store from evidence.

    With features its items are candidates. Without, they are withdrawn, and come back with their
    history when they are put with features.

    Args:
        evidence: what `read_evidence` returns.
        url: where the store will be; it must not exist.
        normalize: whether spellings of a query are one, as with `store.normalize_queries`.
        progress: called with how many queries are done.
        clock: dates what the log does not.
    """
    if normalize:
        evidence = evidence.renamed(normalized)
    names = "normalized" if normalize else "literal"
    async with open(url, "new") as store:
        await fill(store, evidence, clock(), progress)
        await store.meta.set({QUERY_NAMES: names})
        await store.flush()


async def fill(
    store: Store, evidence: Evidence, now: float, progress: Progress | None = None
) -> None:
    """Put evidence into an empty store."""
    last = now if evidence.last_time is None else evidence.last_time
    for done, (query, rows) in enumerate(evidence.rows()):
        await store.items.restore([_state(evidence, query, rows, last)], last)
        if progress is not None and done % QUERIES_AT_ONCE == 0:
            progress(done, len(evidence.queries))
    behaviors = json.dumps(list(evidence.stats.behaviors.names))
    await store.meta.set({BEHAVIORS: behaviors} | _schema(evidence, last))


def _state(evidence: Evidence, query: str, rows: slice, last: float) -> QueryState:
    counts = evidence.stats.counts[rows]
    shown, recorded = counts[:, 0].any(axis=1), evidence.first_shown[rows]
    first = np.where(shown, np.where(np.isnan(recorded), last, recorded), np.nan)
    items, features = evidence.items[rows], evidence.features
    return QueryState(
        query=query,
        ids=items,
        features=np.zeros((len(items), 0), np.float32) if features is None else features[rows],
        counts=np.ascontiguousarray(counts),
        entered=np.where(shown, first, last),
        first_shown=first,
        active=np.full(len(items), features is not None),
    )


def _schema(evidence: Evidence, last: float) -> dict[str, str]:
    if evidence.features is None:
        return {}
    schema = FeatureSchema().with_features(evidence.feature_names)
    began = float(np.nanmin(np.append(evidence.first_shown, last)))
    return {SCHEMA: schema.to_json(), FIRST_ITEM: repr(began)}
