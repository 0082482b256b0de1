"""`ebrank store copy`: a store of another kind, equal to the bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from ebrank.service.ops.transfer.importing import fill
from ebrank.service.store import StoreError, StoreView, open
from ebrank.service.store.base import Progress
from ebrank.service.store.records import QueryState

_REMEDY = "Run `ebrank check` on the store."


class Copied(NamedTuple):
    """How much was copied."""

    queries: int
    items: int
    entries: int


async def copy_store(source: str, target: str, progress: Progress | None = None) -> Copied:
    """Make a new store from another, salt included, and compare the two.

    The store appears when both are equal.

    Raises:
        StoreError: if there is something at its place, or the copy is not equal.
    """
    async with open(source, "read") as view, open(target, "new") as store:
        await fill(store, view, progress)
        counts = Counter[str]()
        copied = _parts(store, Counter())
        async for part in _parts(view, counts):
            if await anext(copied, None) != part:
                raise StoreError(f"{part[0]} not the same in the copy. {_REMEDY}")
        return Copied(**{name: counts[name] for name in Copied._fields})


async def _parts(store: StoreView, counts: Counter[str]) -> AsyncIterator[tuple[str, object]]:
    """Yield all that a store holds, with its names, and count it; the last of each kind ends it."""
    queries = await store.items.queries()
    counts["queries"] = len(queries)
    yield "the names of the queries are", queries
    async for name, row in store.catalog.entries():
        yield "the items of the catalog are", (name, row.tobytes())
    yield "the items of the catalog are", None
    for record in await store.models.all():
        files = await store.models.document(record.version), await store.models.arms(record.version)
        yield "the models are", (record, files)
    yield "the models are", await store.models.active()
    yield "the settings are", await store.meta.all()
    minutes = await store.meta.minutes(0.0)
    yield "the sums of minutes are", [(minute.start, minute.values) for minute in minutes]
    yield "the sums of experiments are", await store.meta.trials()
    yield "the proofs of deletions are", await store.deletions.all()
    for query in queries:
        state = await store.items.load(query)
        counts["items"] += 0 if state is None else len(state.ids)
        yield f"query {query!r} is", (_bits(state), _bits(await store.items.snapshot(query)))
    async for entry in store.log.entries():
        counts["entries"] += 1
        yield f"entry {counts['entries']} of the log is", entry
    yield "the length of the log is", counts["entries"]


def _bits(state: QueryState | None) -> list[object]:
    """Return a key that is equal for bitwise equal states, regardless of their versions."""
    names = [] if state is None else [field.name for field in fields(QueryState)]
    values = [getattr(state, name) for name in names if name != "version"]
    return [
        (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
        for value in values
    ]
