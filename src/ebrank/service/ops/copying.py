"""A new store made from another, whole or not at all: equal to the bit, unless that is damaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import fields
from typing import NamedTuple, TypeVar

import numpy as np

from ebrank.service.ops.replay import listed, replay, watched
from ebrank.service.store import Store, StoreError, open
from ebrank.service.store.base import Damaged, Progress
from ebrank.service.store.records import NewItem, QueryState

T = TypeVar("T")

ENTRIES_AT_ONCE = 1000


class Copied(NamedTuple):
    """How much was copied.

    Attributes:
        left_out: what could not be read, in words; empty if the copy is equal.
    """

    queries: int
    items: int
    entries: int
    left_out: Sequence[str] = ()


async def copy_store(source: str, target: str, progress: Progress | None = None) -> Copied:
    """Make a new store from another, salt included, and compare the two.

    If the other is damaged, the new one gets what can be read, with counters that agree.

    Raises:
        StoreError: if there is something at its place, or nothing can be read.
    """
    counts = Counter[str]()
    try:
        async with open(source, "read") as view, open(target, "new") as store:
            await fill(store, view, progress)
            if difference := await _difference(view, store, counts):
                raise Damaged(f"{difference}. Run `ebrank check` on the store.")
            return Copied(counts["queries"], counts["items"], counts["entries"])
    except Damaged as damage:
        async with open(source, "salvage") as view, open(target, "new") as store:
            await fill(store, view, progress)
            report = await replay(store)
            if not report.equal:
                raise StoreError(f"{damage} What can be read does not fit together.") from damage
            entries = report.rankings + report.events
            left_out = (str(damage), *view.left_out)
            return Copied(report.queries, report.items, entries, left_out)


async def fill(store: Store, source: Store, progress: Progress | None = None) -> None:
    """Put everything in another store into an empty one."""
    last_time = await source.log.last_time()
    some, items = list[QueryState](), 0
    for query in await source.items.queries():
        some.append(listed(query, await source.items.snapshot(query)))
        items += len(some[-1].ids)
        if items >= ENTRIES_AT_ONCE:
            await store.items.restore(some, last_time)
            some, items = [], 0
    await store.items.restore(some, last_time)
    async for shared in _portions(source.catalog.entries()):
        rows = [NewItem(name, tuple(features.tolist())) for name, features in shared]
        await store.catalog.put(rows, last_time)
    async for entries in _portions(watched(source, progress)):
        written = (await store.log.write(entries)).written
        if any(outcome.status != "accepted" for outcome in written):
            raise Damaged("the log contains an event twice")
    await store.deletions.restore(await source.deletions.all())
    for record in await source.models.all():
        document = await source.models.document(record.version)
        assert document is not None, "it is listed"
        await store.models.add(record, document, await source.models.arms(record.version))
    await store.models.activate(await source.models.active())
    minutes, arms = await source.meta.minutes(0.0), await source.meta.arm_sums()
    await store.meta.set(await source.meta.all(), minutes, arms)
    await store.flush()


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


async def _difference(source: Store, store: Store, counts: Counter[str]) -> str:
    """Return what a copy has not as its source has it, "" if nothing; count what the source has."""
    copied = _parts(store, Counter())
    async for part in _parts(source, counts):
        if await anext(copied, None) != part:
            return f"{part[0]} not the same in the copy"
    return ""


async def _parts(store: Store, counts: Counter[str]) -> AsyncIterator[tuple[str, object]]:
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
    yield "the sums of experiments are", await store.meta.arm_sums()
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
