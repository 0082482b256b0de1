"""`ebrank store copy`: a store of another kind, equal to the bit; it continues if interrupted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from ebrank.service.ops.transfer.importing import fill
from ebrank.service.store import StoreError, StoreView, open
from ebrank.service.store.base import Progress
from ebrank.service.store.records import QueryState

_REMEDY = (
    "If the store has changed since the copy was begun, remove the unfinished copy and begin "
    "again; else run `ebrank check` on the store."
)


class Copied(NamedTuple):
    """How much was copied."""

    queries: int
    items: int
    entries: int


async def copy_store(source: str, target: str, progress: Progress | None = None) -> Copied:
    """Make a new store from another, salt included, and compare the two.

    The store appears when both are equal. If it is interrupted, the next call continues.

    Raises:
        StoreError: if there is something at its place, or the copy is not equal.
    """
    async with open(source, "read") as view, open(target, "copy") as store:
        await fill(store, view, progress)
        await _compare(view, store)
        items, queries = 0, await view.items.queries()
        for query in queries:
            items += await _compared(view, store, query)
        return Copied(len(queries), items, await _compared_logs(view, store))


async def _compare(view: StoreView, store: StoreView) -> None:
    """Raise unless all but the queries' items and the log is the same in both stores.

    A copy that was continued may hold what was deleted meanwhile.
    """
    copied = _parts(store)
    async for what, part in _parts(view):
        if await anext(copied, None) != (what, part):
            raise StoreError(f"the {what} are not the same in the copy. {_REMEDY}")


async def _parts(store: StoreView) -> AsyncIterator[tuple[str, object]]:
    """Yield small parts of a store with their names; the last one with a name ends them."""
    yield "names of the queries", await store.items.queries()
    async for name, row in store.catalog.entries():
        yield "items of the catalog", (name, row.tobytes())
    yield "items of the catalog", None
    for record in await store.models.all():
        yield "models", (record, await store.models.document(record.version))
    yield "models", await store.models.active()
    yield "settings", await store.meta.all()
    minutes = await store.meta.minutes(0.0)
    yield "sums of minutes", [(minute.start, minute.values) for minute in minutes]
    yield "proofs of deletions", await store.deletions.all()


async def _compared(view: StoreView, store: StoreView, query: str) -> int:
    """Return how many items a query has, which are the same in both stores."""
    pairs = [
        (await view.items.load(query), await store.items.load(query)),
        (await view.items.snapshot(query), await store.items.snapshot(query)),
    ]
    if not all(_same(*pair) for pair in pairs):
        raise StoreError(f"query {query!r} is not the same in the copy. {_REMEDY}")
    there = pairs[0][0]
    return 0 if there is None else len(there.ids)


def _same(one: QueryState | None, two: QueryState | None) -> bool:
    """Return whether two states are equal to the bit, whatever their versions."""
    if one is None or two is None:
        return one is two
    names = [field.name for field in fields(QueryState) if field.name != "version"]
    values = ((getattr(one, name), getattr(two, name)) for name in names)
    return all(
        here.shape == there.shape and here.tobytes() == there.tobytes()
        if isinstance(here, np.ndarray)
        else here == there
        for here, there in values
    )


async def _compared_logs(view: StoreView, store: StoreView) -> int:
    """Return how many entries the log has, which are the same in both stores."""
    count, copied = 0, aiter(store.log.entries())
    async for entry in view.log.entries():
        if await anext(copied, None) != entry:
            raise StoreError(f"entry {count + 1} of the log is not the same in the copy. {_REMEDY}")
        count += 1
    if await anext(copied, None) is not None:
        raise StoreError(f"the copy has more than the {count} entries of the log. {_REMEDY}")
    return count
