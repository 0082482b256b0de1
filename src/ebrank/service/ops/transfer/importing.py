"""`ebrank import`: a store made from an export, whole or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

import numpy as np

from ebrank.errors import DataError
from ebrank.service.ops.replay import listed
from ebrank.service.ops.transfer.exported import Exported
from ebrank.service.store import Store, open
from ebrank.service.store.base import Progress, StoreView
from ebrank.service.store.records import NewItem, QueryState

T = TypeVar("T")

ENTRIES_AT_ONCE = 1000


async def import_store(exported: Exported, url: str, progress: Progress | None = None) -> None:
    """Make a new store from an export, and check that its counters are those exported.

    Raises:
        StoreError: if something exists in its place.
        DataError: if the export contradicts itself.
    """
    async with open(url, "new") as store:
        await fill(store, exported, progress)
        await check(store, exported)


async def fill(store: Store, exported: StoreView, progress: Progress | None = None) -> None:
    """Put everything in an export, or in another store, into an empty store."""
    last_time = await exported.log.last_time()
    await _fill_items(store, exported, last_time)
    await _fill_catalog(store, exported, last_time)
    await _fill_log(store, exported, progress)
    await store.deletions.restore(await exported.deletions.all())
    for record in await exported.models.all():
        document = await exported.models.document(record.version)
        assert document is not None, "it is listed"
        await store.models.add(record, document, await exported.models.arms(record.version))
    await store.models.activate(await exported.models.active())
    minutes, trials = await exported.meta.minutes(0.0), await exported.meta.trials()
    await store.meta.set(await exported.meta.all(), minutes, trials)
    await store.flush()


async def _fill_items(store: Store, exported: StoreView, time: float) -> None:
    """Add queries, some at a time."""
    some, items = list[QueryState](), 0
    for query in await exported.items.queries():
        state = listed(query, await exported.items.snapshot(query))
        some.append(state)
        items += len(state.ids)
        if items >= ENTRIES_AT_ONCE:
            await store.items.restore(some, time)
            some, items = [], 0
    await store.items.restore(some, time)


async def _fill_log(store: Store, exported: StoreView, progress: Progress | None) -> None:
    total, done = await exported.log.length(), 0
    async for entries in _portions(exported.log.entries()):
        done += len(entries)
        written = (await store.log.write(entries)).written
        if any(outcome.status != "accepted" for outcome in written):
            raise DataError("the log contains an event twice")
        if progress is not None:
            progress(done, total)


async def _fill_catalog(store: Store, exported: StoreView, time: float) -> None:
    async for items in _portions(exported.catalog.entries()):
        rows = [NewItem(name, tuple(features.tolist())) for name, features in items]
        await store.catalog.put(rows, time)


async def _portions(entries: AsyncIterator[T]) -> AsyncIterator[list[T]]:
    """Yield entries in lists of some."""
    portion: list[T] = []
    async for entry in entries:
        portion.append(entry)
        if len(portion) == ENTRIES_AT_ONCE:
            yield portion
            portion = []
    if portion:
        yield portion


async def check(store: Store, exported: Exported) -> None:
    """Raise unless the counters of a store are those that were exported."""
    for query in await exported.items.queries():
        there = listed(query, await exported.items.load(query))
        here = listed(query, await store.items.load(query))
        if not np.array_equal(there.counts, here.counts):
            raise DataError(
                f"the evidence of query {query!r} is not what snapshot and log add up to",
                path=exported.folder,
                remedy="Run `ebrank replay` for details, then export again.",
            )
