"""What every store must do.

    from ebrank.service import store
    from ebrank.testing import check_store

    check_store(lambda name: store.open(f"mypackage.mystore:MyStore:{folder}/{name}"))

`MemoryStore` is the reference that others are compared with. `check_one` runs one of `CHECKS`.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from itertools import count
from typing import TypeAlias

import numpy as np

from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.slots import SLOTS, slot_of
from ebrank.service.core.queries.live import LiveQuery
from ebrank.service.store.base import Store, StoreError, UnknownQuery
from ebrank.service.store.counting import items_of
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import (
    LIFE,
    Deletion,
    EventEntry,
    Hint,
    Minute,
    ModelRecord,
    NewItem,
    Operation,
    QueryState,
    RankingEntry,
    RolledUp,
)
from ebrank.testing.histories import (
    BEHAVIORS,
    bits,
    catalog,
    contents,
    counts,
    event,
    fill,
    first_shown,
    new_items,
    ranking,
)

Open: TypeAlias = Callable[[str], AbstractAsyncContextManager[Store]]
"""Opens the store with a name, which is a plain word; an empty one the first time."""


class Stores:
    """Opens stores for a check."""

    def __init__(self, open: Open, prefix: str, *, keeps: bool) -> None:
        self._open = open
        self._prefix = prefix
        self._numbers = count()
        self.keeps = keeps

    def new(self) -> AbstractAsyncContextManager[Store]:
        """Open an empty store."""
        return self.named(f"new{next(self._numbers)}")

    def named(self, name: str) -> AbstractAsyncContextManager[Store]:
        """Open the store with a name again, or for the first time."""
        return self._open(f"{self._prefix}-{name}")


Check: TypeAlias = Callable[[Stores], Coroutine[None, None, None]]
CHECKS: dict[str, Check] = {}
"""All checks by name, in order."""


def check_store(open: Open, *, keeps: bool = True) -> None:
    """Raise an `AssertionError` unless stores keep their promises; takes a few seconds.

    Args:
        open: opens the store with a name.
        keeps: whether a store that is closed and opened again holds what it held.
    """
    for name in CHECKS:
        check_one(name, open, keeps=keeps)


def check_one(name: str, open: Open, *, keeps: bool = True) -> None:
    """Run one of `CHECKS`."""
    try:
        asyncio.run(CHECKS[name](Stores(open, name, keeps=keeps)))
    except Exception as problem:
        about = " ".join((CHECKS[name].__doc__ or "").split())
        what = "" if isinstance(problem, AssertionError) else f"{type(problem).__name__}: "
        raise AssertionError(f"{name}: {about} But {what}{problem}") from problem


def _check(function: Check) -> Check:
    CHECKS[getattr(function, "__name__", "")] = function
    return function


def _equal(what: str, found: object, expected: object) -> None:
    assert found == expected, f"{what} is {found!r}, not {expected!r}"


async def _refused(call: Awaitable[object], *words: str) -> None:
    try:
        await call
    except StoreError as problem:
        text = str(problem)
    else:
        raise AssertionError(f"no StoreError was raised ({', '.join(words)})")
    for word in words:
        assert word in text, f"the error {text!r} does not say {word!r}"


async def _log(store: Store) -> list[Operation]:
    return [entry async for entry in store.log.entries()]


async def _counts(store: Store, query: str = "q") -> dict[str, dict[tuple[int, int], int]]:
    return counts(await store.items.load(query))


async def _state(store: Store, query: str = "q") -> QueryState:
    state = await store.items.load(query)
    assert state is not None, f"the query {query!r} is unknown"
    return state


async def _statuses(store: Store, operations: list[Operation]) -> list[str]:
    return [one.status for one in (await store.log.write(operations)).written]


# --- items ---------------------------------------------------------------------------------------


@_check
async def empty(stores: Stores) -> None:
    """A new store knows nothing."""
    async with stores.new() as store:
        _equal("items.queries()", await store.items.queries(), [])
        _equal("items.load('q')", await store.items.load("q"), None)
        _equal("items.snapshot('q')", await store.items.snapshot("q"), None)
        _equal("log.ranking('r')", await store.log.ranking("r"), None)
        _equal("log.entries()", await _log(store), [])
        _equal("log.length()", await store.log.length(), 0)
        _equal("log.last_time()", await store.log.last_time(), 0.0)
        _equal("models.all()", await store.models.all(), [])
        _equal("models.document(1)", await store.models.document(1), None)
        _equal("models.active()", await store.models.active(), 0)
        _equal("meta.get('features')", await store.meta.get("features"), None)
        _equal("meta.all()", await store.meta.all(), {})
        _equal("meta.minutes(0.0)", await store.meta.minutes(0.0), [])
        _equal("log.write([])", (await store.log.write([]))[:4], ([], {}, 0, 0))
        _equal("items.tally()", await store.items.tally(), (0, []))
        _equal("catalog.version()", await store.catalog.version(), 0)
        _equal("catalog.read(['a'])", await store.catalog.read(["a"]), {})
        _equal("the catalog", await catalog(store), {})
        _equal("catalog.tally()", await store.catalog.tally(), (0, []))
        await store.flush()


@_check
async def item_order(stores: Stores) -> None:
    """Items stand in the order in which they entered, with their last features."""
    async with stores.new() as store:
        nan = float("nan")
        await store.items.put("q", [NewItem("b", (1.0, nan)), NewItem("a", (3.0, 0.1))], 5.0)
        await store.items.put("q", new_items("c", "a"), 6.0)
        state = await _state(store)
        _equal("query and ids", (state.query, list(state.ids)), ("q", ["b", "a", "c"]))
        expected = np.array([[1.0, nan], [97.0, 97.0], [99.0, 99.0]], np.float32)
        _equal("the type of features", state.features.dtype, np.dtype(np.float32))
        assert np.array_equal(state.features, expected, equal_nan=True), "features differ"
        _equal("entered", state.entered.tolist(), [5.0, 5.0, 6.0])
        assert np.isnan(state.first_shown).all(), "first_shown of an item never shown is not NaN"
        _equal("active", state.active.tolist(), [True] * 3)
        _equal("the counts", counts(state), {"b": {}, "a": {}, "c": {}})
        found = state.counts.shape, state.counts.dtype
        _equal("the shape and type of counts", found, ((3, 2, 1), np.dtype(np.int32)))
        _equal("log.last_time()", await store.log.last_time(), 6.0)


@_check
async def query_order(stores: Stores) -> None:
    """Queries stand in the order in which they were first given; no items make no query."""
    async with stores.new() as store:
        for query in ("z", "a", "m", "a"):
            await store.items.put(query, new_items("x"), 1.0)
        _equal("put without items", await store.items.put("none", [], 1.0), 0)
        _equal("items.queries()", await store.items.queries(), ["z", "a", "m"])
        _equal("items.load('none')", await store.items.load("none"), None)


@_check
async def withdrawn(stores: Stores) -> None:
    """A withdrawn item keeps its history and may come back."""
    async with stores.new() as store:
        await fill(store)
        before = await _counts(store)
        assert await store.items.withdraw("q", "a", 80.0) is not None, "it was a candidate"
        for query, item in (("q", "a"), ("q", "nobody"), ("nothing", "a")):
            found = await store.items.withdraw(query, item, 81.0)
            _equal(f"withdrawing {item!r} of {query!r}", found, None)
        state = await _state(store)
        _equal("active", state.active.tolist(), [False, True, True, False])
        _equal("log.last_time()", await store.log.last_time(), 80.0)
        await store.items.put("q", new_items("a"), 90.0)
        state = await _state(store)
        _equal("active", state.active.tolist(), [True, True, True, False])
        _equal("entered of the item that came back", state.entered[0], 1.0)
        _equal("the counts", counts(state), before)


@_check
async def widths(stores: Stores) -> None:
    """A row of features may end before others do; what follows is missing."""
    async with stores.new() as store:
        mixed = [*new_items("a"), *new_items("b", width=3), *new_items("c", width=0)]
        await store.items.put("q", mixed, 1.0)
        await store.items.put("q", new_items("a", width=1), 2.0)
        nan = float("nan")
        expected = np.array([[97.0, nan, nan], [98.0] * 3, [nan] * 3], np.float32)
        found = (await _state(store)).features
        assert np.array_equal(found, expected, equal_nan=True), f"features are {found}"
        await store.items.put("p", new_items("z", width=0), 3.0)
        _equal("features of no width", (await _state(store, "p")).features.shape, (1, 0))
        _equal("items.tally()", await store.items.tally(), (4, [2, 1, 1]))


@_check
async def ownership(stores: Stores) -> None:
    """The caller owns what is loaded."""
    async with stores.new() as store:
        await fill(store)
        state, before = await _state(store), bits(await store.items.load("q"))
        state.counts[:] = 7
        state.features[:] = 0.0
        state.active[:] = False
        _equal("the query, loaded again", bits(await store.items.load("q")), before)


@_check
async def many_items(stores: Stores) -> None:
    """A query of thousands of items is like any other."""
    async with stores.new() as store:
        items = [NewItem(f"i{number}", (float(number),)) for number in range(3000)]
        await store.items.put("q", items, 1.0)
        await store.items.put("q", [NewItem("i7", (0.5,)), NewItem("last", (1.0,))], 2.0)
        state = await _state(store)
        _equal("the ids", list(state.ids), [*(item.id for item in items), "last"])
        _equal("a feature that was changed", state.features[7].tolist(), [0.5])
        _equal("the version", state.version, 2)


# --- the catalog ---------------------------------------------------------------------------------


@_check
async def catalog_rows(stores: Stores) -> None:
    """The catalog holds the last row of each item, until it is removed."""
    async with stores.new() as store:
        items = [NewItem("ä", (1.0, float("nan"))), NewItem("b", (2.0,)), NewItem("a", (3.0, 4.0))]
        _equal("the first write", await store.catalog.put(items, 5.0), (1, 3))
        _equal("log.last_time()", await store.log.last_time(), 5.0)
        names = [name async for name, _ in store.catalog.entries()]
        _equal("the order of names", names, ["a", "b", "ä"])
        _equal("catalog.tally()", await store.catalog.tally(), (3, [3, 1]))
        _equal("the same rows again", await store.catalog.put(items, 6.0), (1, 0))
        some = [NewItem("b", (2.0, 0.5)), NewItem("c", ()), items[0]]
        _equal("two other rows", await store.catalog.put(some, 7.0), (2, 2))
        _equal("removing one of two", await store.catalog.remove(["a", "nobody"], 8.0), (3, 1))
        _equal("removing it again", await store.catalog.remove(["a"], 9.0), (3, 0))
        _equal("log.last_time()", await store.log.last_time(), 8.0)
        rows = {"b": [2.0, 0.5], "c": [], "ä": [1.0, None]}
        _equal("the catalog", await catalog(store), rows)
        found = await store.catalog.read(["a", "b", "nobody"])
        assert found["a"] is None, "a removed item has a row"
        row = found["b"]
        assert row is not None, "an item that was put has no row"
        _equal("the type of a row", row.dtype, np.dtype(np.float32))
        row[:] = 7.0
        _equal("the catalog, read again", await catalog(store), rows)
        _equal("an item that comes back", await store.catalog.put(items[2:], 10.0), (4, 1))
        _equal("its row", (await catalog(store))["a"], [3.0, 4.0])


@_check
async def catalog_changes(stores: Stores) -> None:
    """A reader finds out what has changed since it last looked, be that much or little."""
    async with stores.new() as store:
        names = [f"i{number}" for number in range(1200)]
        await store.catalog.put([NewItem(name, (1.0,)) for name in names], 1.0)
        await store.catalog.put([NewItem(name, (2.0,)) for name in names[:700]], 2.0)
        await store.catalog.remove(names[650:660], 3.0)
        some, most = names[640:655] + names[1000:1010], names[600:]
        for asked in (some, most, names[655:656], ["nobody"]):
            for since in (0, 1, 2, 3):
                changed = [names, names[:700], names[650:660], []][since]
                found = await store.catalog.read(asked, since)
                expected = [name for name in asked if name in set(changed)]
                _equal(f"what changed since {since}", sorted(found), sorted(expected))
                gone = sorted(name for name, row in found.items() if row is None)
                _equal("what is gone", gone, sorted(set(names[650:660]) & set(expected)))
                told = {float(row[0]) for row in found.values() if row is not None}
                here = set(expected) - set(names[650:660])
                numbers = {2.0 if name in set(names[:700]) else 1.0 for name in here}
                _equal("the numbers", told, numbers)


@_check
async def catalog_found(stores: Stores) -> None:
    """A write to the log says which version of the catalog it found; settings make a new one."""
    async with stores.new() as store:
        await store.items.put("q", new_items("a"), 1.0)
        _equal("the version", (await store.log.write([ranking("r1", "a")])).catalog, 0)
        await store.catalog.put(new_items("a"), 2.0, meta={"features": "one"})
        _equal("the version", (await store.log.write([ranking("r2", "a")])).catalog, 1)
        _equal("settings alone", await store.catalog.put([], 2.0, meta={"features": "two"}), (2, 0))
        _equal("nothing at all", await store.catalog.put([], 3.0), (2, 0))
        _equal("the version", (await store.log.write([ranking("r3", "a")])).catalog, 2)
        _equal("the version of no entries", (await store.log.write([])).catalog, 2)
        _equal("the setting", await store.meta.get("features"), "two")


# --- counting ------------------------------------------------------------------------------------


@_check
async def served_lists(stores: Stores) -> None:
    """A served list counts an impression of each item at its rank."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"abcd"), 1.0)
        statuses = await _statuses(store, [ranking("r1", "cab", time=9.0)])
        _equal("what was written", statuses, ["accepted"])
        await store.log.write([ranking("r2", "ca", time=10.0)])
        await store.log.write([ranking("r3", "d", time=11.0, counted=False)])
        state = await _state(store)
        expected = {"a": {(0, 2): 2}, "b": {(0, 3): 1}, "c": {(0, 1): 2}, "d": {}}
        _equal("the counts", counts(state), expected)
        _equal("first_shown", first_shown(state), {"a": 9.0, "b": 9.0, "c": 9.0, "d": None})


@_check
async def long_lists(stores: Stores) -> None:
    """Deep ranks count in bands, as `ebrank.evidence.slots` has them."""
    async with stores.new() as store:
        names = [f"i{number}" for number in range(400)]
        await store.items.put("q", [NewItem(name, (1.0,)) for name in names], 1.0)
        ranks = [1, 10, 11, 15, 16, 25, 26, 50, 51, 100, 101, 300, 301, 400]
        clicks = [
            EventEntry(f"e{rank}", "r", "q", names[rank - 1], "click", rank, 1, False, 3.0, 3.0)
            for rank in ranks
        ]
        await store.log.write([RankingEntry("r", "q", 2.0, 0, tuple(names)), *clicks])
        expected = np.zeros((400, 2, SLOTS), np.int32)
        for rank in range(1, 401):
            expected[rank - 1, 0, slot_of(rank)] = 1
            expected[rank - 1, 1, slot_of(rank)] = rank in ranks
        found = (await _state(store)).counts
        assert np.array_equal(found, expected), "counts at deep ranks are wrong"
        await store.log.roll_up(10.0)
        snapshot = await store.items.snapshot("q")
        assert snapshot is not None, "the query is unknown"
        assert np.array_equal(snapshot.counts, expected), "the snapshot at deep ranks is wrong"


@_check
async def pages(stores: Stores) -> None:
    """A page counts at its ranks, and only what its user has not seen before."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"abcd"), 1.0)
        first = ranking("r1", "ab", time=5.0)
        second = ranking("r2", "cd", time=6.0, offset=9, continues="r1")
        again = ranking("r3", "bda", time=7.0, continues="r1", seen=(2, 0, 1))
        bot = ranking("r4", "abcd", time=8.0, counted=False, bot=True)
        ignored = replace(event("e1", bot, "a", time=9.0), outcome=0, bot=True)
        log: list[Operation] = [first, second, again, bot, ignored]
        await store.log.write(log)
        _equal("the log", await _log(store), log)
        expected = {
            "a": {(0, 1): 1},
            "b": {(0, 2): 1},
            "c": {(0, 10): 1},
            "d": {(0, 11): 1, (0, 2): 1},
        }
        for rolled_up in (False, True):
            if rolled_up:
                await store.log.roll_up(1000.0)
                _equal("the snapshot", counts(await store.items.snapshot("q")), expected)
            state = await _state(store)
            _equal("the counts", counts(state), expected)
            _equal("first_shown", first_shown(state), {"a": 5.0, "b": 5.0, "c": 6.0, "d": 6.0})


@_check
async def all_or_nothing(stores: Stores) -> None:
    """What cannot be stored leaves nothing."""
    first = ranking("r1", "ab")
    bad: dict[str, list[Operation]] = {
        "an unknown item": [ranking("r2", "ax")],
        "an unknown query": [ranking("r2", "a", query="nothing")],
        "an id that is taken": [ranking("r1", "a")],
        "an id given twice": [ranking("r2", "a"), ranking("r2", "b")],
        "an unknown item of an event": [event("e2", ranking("r1", "ax"), "x")],
    }
    for operations in bad.values():
        async with stores.new() as store:
            await store.items.put("q", new_items(*"ab"), 1.0)
            await store.log.write([first])
            before = await contents(store)
            good: list[Operation] = [ranking("r9", "ba"), event("e9", first, "a")]
            await _refused(store.log.write([*good, *operations]))
            _equal("the store", await contents(store), before)
            _equal("the next event", await _statuses(store, good[1:]), ["accepted"])


@_check
async def event_counts(stores: Stores) -> None:
    """Events count at the rank that was logged."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"abc"), 1.0)
        served, quiet = ranking("r1", "abc"), ranking("r2", "cba", counted=False)
        await store.log.write(
            [
                served,
                quiet,
                event("e1", served, "c"),
                event("e2", quiet, "a", "impression", shows=True, time=21.0),
                event("e3", quiet, "b", shows=True, time=22.0),
                event("e4", quiet, "c", "bookmark"),
            ]
        )
        expected = {
            "a": {(0, 1): 1, (0, 3): 1},
            "b": {(0, 2): 2, (1, 2): 1},
            "c": {(0, 3): 1, (1, 3): 1},
        }
        _equal("the counts", await _counts(store), expected)


@_check
async def negative_behavior(stores: Stores) -> None:
    """After a negative behavior an impression has no outcome, whatever comes before or after."""
    one, two, three = ranking("r1", "ab"), ranking("r2", "ab"), ranking("r3", "ab", counted=False)
    entries: list[Operation] = [
        event("e1", one, "a", "click"),
        event("e2", one, "a", "purchase"),
        event("e3", one, "a", "hide"),
        event("e4", one, "a", "return"),
        event("e5", two, "a", "hide"),
        event("e6", two, "a", "click"),
        event("e7", one, "b", "click"),
        event("e8", two, "b", "bookmark"),
        event("e9", two, "b", "return"),
        event("f1", three, "b", "hide", shows=True),
        event("f2", three, "b", "click", shows=True),
    ]
    counted = [(1, 0), (2, 1), (-1, 2), (0, 0), (-1, 0), (0, 0), (1, 0), (0, 0), (-1, 0)]
    counted += [(-1, 0), (0, 0)]
    for batches in ([entries], [[entry] for entry in entries]):
        async with stores.new() as store:
            await store.items.put("q", new_items(*"ab"), 1.0)
            await store.log.write([one, two, three])
            written = [one for batch in batches for one in (await store.log.write(batch)).written]
            found = [(one.outcome, one.replaces) for one in written]
            _equal("outcomes, and what they replace", found, counted)
            expected = {"a": {(0, 1): 2}, "b": {(0, 2): 3, (1, 2): 1}}
            _equal("the counts", await _counts(store), expected)
            await store.log.roll_up(1000.0)
            _equal("the snapshot", counts(await store.items.snapshot("q")), expected)


@_check
async def forgetting(stores: Stores) -> None:
    """Counters fade from epoch to epoch by the same bits for all, whenever a roll-up comes."""
    for seed in range(3):
        for roll_ups in (False, True):
            async with stores.new() as store:
                memory, lists = MemoryStore(), list[RankingEntry]()
                for one in (store, memory):
                    await one.items.put("q", new_items(*"abcdef"), 1.0)
                    await one.items.put("p", new_items(*"abcdef"), 1.0)
                chance, epoch = random.Random(seed), 0
                for turn in range(60):
                    epoch += chance.choice([0, 0, 0, 1, 1, 5])
                    entries = _random_entries(chance, float(turn + 10), lists, epoch)
                    found = (await store.log.write(entries)).written
                    _equal("what was written", found, (await memory.log.write(entries)).written)
                    if roll_ups and turn % 7 == 6:
                        await store.log.roll_up(float(turn))
                for query in "pq":
                    state, truth = await _state(store, query), await _state(memory, query)
                    _equal("the state", bits(state), bits(truth))
                    most = state.counts[:, SHOWN] - state.counts[:, SHOWN + 1 :].sum(axis=1)
                    assert state.counts.min() >= 0, "a count is negative"
                    assert most.min() >= 0, "there are more outcomes than impressions"
                await store.log.roll_up(1000.0)
                for query in "pq":
                    snapshot = await store.items.snapshot(query)
                    found_bits = bits(snapshot)
                    _equal("the snapshot of all", found_bits, bits(await _state(memory, query)))


@_check
async def best_behavior(stores: Stores) -> None:
    """An impression's outcome is its best behavior, in whatever order they come."""
    one, two = ranking("r1", "ab"), ranking("r2", "ab")
    entries: list[Operation] = [
        event("e1", one, "a", "click"),
        event("e2", one, "a", "purchase"),
        event("e3", two, "a", "purchase"),
        event("e4", two, "a", "click"),
        event("e5", one, "b", "impression"),
        event("e6", one, "b", "click"),
        event("e7", two, "b", "bookmark"),
        event("e8", two, "b", "purchase"),
    ]
    counted = [(1, 0), (2, 1), (2, 0), (0, 0), (0, 0), (1, 0), (0, 0), (2, 0)]
    for batches in ([entries], [[entry] for entry in entries]):
        async with stores.new() as store:
            await store.items.put("q", new_items(*"ab"), 1.0)
            await store.log.write([one, two])
            written = [one for batch in batches for one in (await store.log.write(batch)).written]
            _equal("what was written", {one.status for one in written}, {"accepted"})
            found = [(one.outcome, one.replaces) for one in written]
            _equal("outcomes, and what they replace", found, counted)
            logged = [entry for entry in await _log(store) if isinstance(entry, EventEntry)]
            found = [(entry.outcome, entry.replaces) for entry in logged]
            _equal("outcomes in the log", found, counted)
            expected = {
                "a": {(0, 1): 2, (2, 1): 2},
                "b": {(0, 2): 2, (1, 2): 1, (2, 2): 1},
            }
            _equal("the counts", await _counts(store), expected)
            await store.log.roll_up(1000.0)
            _equal("the snapshot", counts(await store.items.snapshot("q")), expected)


@_check
async def one_impression(stores: Stores) -> None:
    """An item of a list is shown once: by the first event that counts, not by a duplicate."""
    one, two = ranking("r1", "abc", counted=False), ranking("r2", "abc", counted=False)
    entries: list[Operation] = [
        event("e1", one, "a", "impression", shows=True),
        event("e2", one, "a", "click", shows=True),
        event("e3", one, "b", "click", shows=True),
        event("e4", one, "b", "impression", shows=True),
        event("e1", one, "c", "impression", shows=True),
        event("e5", one, "c", "click", shows=True),
        event("e6", two, "a", "bookmark"),
        event("e7", two, "a", "click", shows=True),
    ]
    expected = [True, False, True, False, False, True, False, True]
    for batches in ([entries], [[entry] for entry in entries]):
        async with stores.new() as store:
            await store.items.put("q", new_items(*"abc"), 1.0)
            await store.log.write([one, two])
            written = [one for batch in batches for one in (await store.log.write(batch)).written]
            statuses = ["accepted"] * 4 + ["duplicate"] + ["accepted"] * 3
            _equal("what was written", [one.status for one in written], statuses)
            _equal("what shows", [one.shows for one in written], expected)
            logged = [entry for entry in await _log(store) if isinstance(entry, EventEntry)]
            shows = [entry.shows for entry in logged]
            _equal("what the log says shows", shows, expected[:4] + expected[5:])
            found = await _counts(store)
            both = {(0, 2): 1, (1, 2): 1}
            expected_counts = {"a": {(0, 1): 2, (1, 1): 2}, "b": both, "c": {(0, 3): 1, (1, 3): 1}}
            _equal("the counts", found, expected_counts)


@_check
async def duplicates(stores: Stores) -> None:
    """The same event, or the same type of event for an item of a list, counts once."""
    served = ranking("r1", "abc")
    entries: list[Operation] = [
        served,
        event("e1", served, "a"),
        event("e1", served, "b"),
        event("e2", served, "a"),
        event("e3", served, "a", "impression"),
    ]
    for batches in ([entries], [[entry] for entry in entries]):
        async with stores.new() as store:
            await store.items.put("q", new_items(*"abc"), 1.0)
            written = [one for batch in batches for one in (await store.log.write(batch)).written]
            statuses = ["accepted", "accepted", "duplicate", "duplicate", "accepted"]
            _equal("what was written", [one.status for one in written], statuses)
            _equal("the first reason", written[2].reason, "event_id was seen before")
            assert "was counted for this item" in written[3].reason, written[3].reason
            expected = {"a": {(0, 1): 1, (1, 1): 1}, "b": {(0, 2): 1}, "c": {(0, 3): 1}}
            _equal("the counts", await _counts(store), expected)
            _equal("the log", await _log(store), [entries[0], entries[1], entries[4]])
            again = await _statuses(store, entries[1:])
            _equal("the same events again", again, ["duplicate"] * 4)
            await store.items.put("p", new_items(*"abc"), 1.0)
            other = event("e1", ranking("r9", "abc", query="p"), "a")
            _equal("the id in another query", await _statuses(store, [other]), ["accepted"])


@_check
async def names(stores: Stores) -> None:
    """Any text is a name."""
    texts = ["", " ", "\0", "'; --", "%_\\", "☂", "e\u0301", "é", "a\nb", "x" * 600, "\U0010ffff"]
    async with stores.new() as store:
        for number, text in enumerate(texts):
            query, item = f"{text}☂", f"{text}!"
            items = [NewItem(item, (1.0,)), NewItem("", (2.0,))]
            await store.items.put(query, items, 1.0)
            served = RankingEntry(
                f"r{text}{number}", query, 2.0, 0, (item, ""), would_rank=("", item)
            )
            name = f"e{text}{number}"
            click = EventEntry(name, served.id, query, item, text, 1, 1, False, 3.0, 3.0)
            await store.log.write([served, click])
            _equal("the end of the log", (await _log(store))[-2:], [served, click])
            _equal("the ranking", await store.log.ranking(served.id), served)
            expected = {item: {(0, 1): 1, (1, 1): 1}, "": {(0, 2): 1}}
            _equal("the counts", await _counts(store, query), expected)


# --- versions ------------------------------------------------------------------------------------


@_check
async def versions(stores: Stores) -> None:
    """Each write to a query, and nothing else, advances its version by one."""
    async with stores.new() as store:

        async def known() -> list[int]:
            states = [await store.items.load(query) for query in "qp"]
            return [0 if state is None else state.version for state in states]

        _equal("the version of a new query", await store.items.put("q", new_items("a"), 1.0), 1)
        _equal("versions", await known(), [1, 0])
        _equal("the next", await store.items.put("q", new_items(*"abc"), 1.0), 2)
        _equal("that of another query", await store.items.put("p", new_items("a"), 1.0), 1)
        _equal("a put without items", await store.items.put("q", [], 1.0), 2)
        _equal("a withdrawal", await store.items.withdraw("q", "c", 1.0), 3)
        _equal("one of nothing", await store.items.withdraw("q", "c", 1.0), None)
        one, two = ranking("r1", "ab"), ranking("r2", "a", query="p")
        commit = await store.log.write([one, two, event("e1", one, "a")])
        _equal("versions after a write", commit.versions, {"q": 4, "p": 2})
        commit = await store.log.write([event("e1", one, "a")])
        _equal("versions after a duplicate", commit.versions, {"q": 5})
        await _refused(store.log.write([ranking("r1", "a")]))
        await store.log.roll_up(1000.0)
        await store.meta.set({"key": "value"})
        _equal("versions", await known(), [5, 2])


@_check
async def news(stores: Stores) -> None:
    """A write may say what others have counted since a version; that, and no more, is new."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"abcd"), 1.0)
        await store.items.put("p", new_items("a"), 1.0)
        ours = await _state(store)
        alone = await store.log.write([ranking("r0", "d")], known=lambda _: ours.version)
        _equal("news of nobody", alone.news, {})
        ours = await _state(store)
        one = ranking("r1", "ab")
        await store.log.write([one, event("e1", one, "b")])
        last = ranking("r2", "ca")
        commit = await store.log.write([last], known=lambda _: ours.version)
        now = await _state(store)
        _equal("the version", commit.versions, {"q": now.version})
        for query, found in commit.news.items():
            _equal("whose news", query, "q")
            caught_up = LiveQuery(ours, seed=0, since=0.0)
            _equal("since when", found.since, ours.version)
            caught_up.catch_up(now.version - 1, found)
            caught_up.add(last, [2, 0])
            _equal("the counts", caught_up.counts.tolist(), now.counts.tolist())
            _equal("first_shown", first_shown(caught_up.state), first_shown(now))
        for change in (
            lambda: store.items.put("q", new_items("e"), 9.0),
            lambda: store.items.withdraw("q", "e", 9.0),
            lambda: store.deletions.item("e", "gone", "digest", 9.0),
        ):
            before = (await _state(store)).version
            await change()
            await store.log.write([replace(one, id=f"r{before}a")])
            later = [replace(one, id=f"r{before}b"), ranking(f"r{before}c", "a", query="p")]
            known = {"q": before, "p": None}
            commit = await store.log.write(later, known=known.__getitem__)
            _equal("news where items have changed", commit.news, {})


@_check
async def active_model_found(stores: Stores) -> None:
    """A write says which model it found active."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"ab"), 1.0)
        for number, active in enumerate((0, 1, 0)):
            if number == 1:
                await store.models.add(ModelRecord(1, 5.0, 10, None, None, True), b"one")
            await store.models.activate(active)
            commit = await store.log.write([ranking(f"r{number}", "ab")])
            _equal("the active model", commit.model, active)


# --- log and roll-up -----------------------------------------------------------------------------


@_check
async def log_gives_back(stores: Stores) -> None:
    """The log gives back what was written."""
    async with stores.new() as store:
        log = await fill(store)
        _equal("the log", await _log(store), log)
        length = await store.log.length()
        assert length >= len(log), f"log.length() is {length}, less than {len(log)}"
        _equal("a ranking", await store.log.ranking("r2"), log[2])
        _equal("log.last_time()", await store.log.last_time(), 71.0)


@_check
async def long_log(stores: Stores) -> None:
    """A log of thousands of entries is read in its order."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"abc"), 1.0)
        log: list[Operation] = []
        for number in range(900):
            served = ranking(f"r{number}", "abc", time=10.0 + number)
            log += [served, event(f"e{number}", served, "b", time=10.0 + number)]
            if number % 3 == 0:
                log.append(event(f"f{number}", served, "c", time=10.0 + number))
        for begin in range(0, len(log), 500):
            await store.log.write(log[begin : begin + 500])
            await store.log.write([event("e0", ranking("r0", "abc"), "b")])  # a duplicate
        _equal("the log's entries", await _log(store) == log, True)
        rolled_up = await store.log.roll_up(10.0 + 700)
        _equal("what was rolled up", rolled_up, RolledUp(700, 700 + 234))
        rest = log[700 + 700 + 234 :]
        _equal("the rest of the log", await _log(store) == rest, True)
        for lists, entries in ((1, 2), (150, 350), (200, len(rest)), (201, len(rest))):
            found = [entry async for entry in store.log.latest(lists)]
            _equal(f"the log from the latest {lists} lists on", found == rest[-entries:], True)


@_check
async def roll_up(stores: Stores) -> None:
    """A roll-up moves the head of the log, up to the first younger entry, to the snapshot."""
    for before in (5.0, 10.5, 20.0, 20.5, 40.5, 55.0, 1000.0):
        async with stores.new() as store:
            log = await fill(store)
            await store.meta.set({}, [Minute(0.0, {"clicks": 1.0}), Minute(60.0, {"clicks": 2.0})])
            whole = await contents(store)
            times = [one.received if isinstance(one, EventEntry) else one.time for one in log]
            old = [entry for entry, time in zip(log, times, strict=True) if time < before]
            events = sum(isinstance(entry, EventEntry) for entry in old)
            expected = RolledUp(len(old) - events, events)
            _equal("what was rolled up", await store.log.roll_up(before), expected)
            _equal("the second time", await store.log.roll_up(before), RolledUp(0, 0))
            after = await contents(store)
            _equal("the log", after["log"], log[len(old) :])
            _equal("the counters", after["current"], whole["current"])
            _equal("the last time", after["last"], whole["last"])
            starts = [start for start, _ in after["minutes"]]
            _equal("the minutes", starts, [start for start in (0.0, 60.0) if start >= before])
            only_old = MemoryStore()
            await only_old.items.put("q", new_items(*"abcd"), 1.0)
            await only_old.items.put("other query ☂", [NewItem("ä", (1.0, float("nan")))], 2.0)
            await only_old.log.write(old)
            for query in await store.items.queries():
                snapshot = await store.items.snapshot(query)
                loaded = await only_old.items.load(query)
                _equal("the snapshot", counts(snapshot), counts(loaded))
                _equal("first_shown of the snapshot", first_shown(snapshot), first_shown(loaded))
            gone = await store.log.ranking("r1") is None
            _equal("whether an old ranking is gone", gone, before > 10.0)


@_check
async def roll_up_stops(stores: Stores) -> None:
    """A roll-up stops at the first younger entry, whatever comes after it."""
    async with stores.new() as store:
        await store.items.put("q", new_items("a"), 1.0)
        entries = [ranking(f"r{time}", "a", time=time) for time in (5.0, 9.0, 5.5)]
        await store.log.write(entries)
        _equal("what was rolled up", await store.log.roll_up(9.0), RolledUp(1, 0))
        _equal("the log", await _log(store), entries[1:])


@_check
async def after_roll_up(stores: Stores) -> None:
    """The log goes on after all was rolled up, and an event's ranking may have left it."""
    async with stores.new() as store:
        log = await fill(store)
        await store.log.roll_up(1000.0)
        first, again = log[0], ranking("r7", "ab", time=100.0)
        assert isinstance(first, RankingEntry)
        orphan = event("e1", first, "b", "bookmark", time=101.0)
        _equal("what was written", await _statuses(store, [again, orphan]), ["accepted"] * 2)
        _equal("the log", await _log(store), [again, orphan])


@_check
async def minutes_kept_longer(stores: Stores) -> None:
    """A roll-up may keep minutes longer than entries."""
    async with stores.new() as store:
        await store.meta.set({}, [Minute(start, {"clicks": 1.0}) for start in (0.0, 60.0, 120.0)])
        await store.log.roll_up(120.0, minutes_before=60.0)
        kept = [minute.start for minute in await store.meta.minutes(0.0)]
        _equal("the minutes", kept, [60.0, 120.0])
        await store.log.roll_up(120.0)
        _equal("the minutes", [one.start for one in await store.meta.minutes(0.0)], [120.0])


@_check
async def restored(stores: Stores) -> None:
    """A history is restored: a snapshot, then the log."""
    origin = MemoryStore()
    await fill(origin)
    await origin.log.roll_up(30.5)
    async with stores.new() as store:
        for query in await origin.items.queries():
            state = await origin.items.snapshot(query)
            assert state is not None
            await store.items.restore(state, await origin.log.last_time())
            await _refused(store.items.restore(state, 1.0), "there already")
            loaded = await store.items.load(query)
            assert loaded is not None, "the query is unknown"
            _equal("the version", loaded.version, 1)
        await store.log.write([entry async for entry in origin.log.entries()])
        rows = [NewItem(name, tuple(row)) async for name, row in origin.catalog.entries()]
        await store.catalog.put(rows, 1.0)
        _equal("the store", await contents(store), await contents(origin))


@_check
async def restored_upgrades(stores: Stores) -> None:
    """An event says what it replaces, if that was rolled up before its log was restored."""
    one = ranking("r1", "ab", time=5.0)
    log: list[Operation] = [
        one,
        event("e1", one, "a", "click", time=6.0),
        event("e2", one, "a", "purchase", time=7.0),
        event("e3", one, "a", "hide", time=8.0),
    ]
    for before in (6.5, 7.5):
        origin = MemoryStore()
        await origin.items.put("q", new_items(*"ab"), 1.0)
        await origin.log.write(log)
        await origin.log.roll_up(before)
        async with stores.new() as store:
            state = await origin.items.snapshot("q")
            assert state is not None
            await store.items.restore(state, 8.0)
            await store.log.write([entry async for entry in origin.log.entries()])
            _equal("the store", await contents(store), await contents(origin))


@_check
async def at_once(stores: Stores) -> None:
    """Tasks that write, read and roll up at once lose and double nothing."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"abc"), 1.0)

        async def work(worker: int) -> None:
            for number in range(20):
                one = ranking(f"r{worker}-{number}", "abc", time=10.0)
                await store.log.write([one, event(f"e{worker}-{number}", one, "b", time=10.0)])
                await (store.log.roll_up(11.0) if number % 10 == 5 else store.flush())
                await store.items.load("q")

        await asyncio.gather(*(work(worker) for worker in range(4)))
        expected = {"a": {(0, 1): 80}, "b": {(0, 2): 80, (1, 2): 80}, "c": {(0, 3): 80}}
        _equal("the counts", await _counts(store), expected)
        state = await _state(store)
        _equal("the version", state.version, 81)
        await store.log.roll_up(11.0)
        snapshot = counts(await store.items.snapshot("q"))
        _equal("the snapshot after a roll-up of all", snapshot, await _counts(store))


# --- models and settings -------------------------------------------------------------------------


@_check
async def models(stores: Stores) -> None:
    """Models are kept, and one is active."""
    first = ModelRecord(1, 5.0, 10, None, 0.5, activated=True, reason="schedule")
    second = ModelRecord(2, 6.0, 20, 0.4, 0.3, False, "worse", ("p0", "s1"))
    async with stores.new() as store:
        await store.models.add(first, b"one")
        await store.models.add(second, b"two\0")
        _equal("models.all()", await store.models.all(), [first, second])
        documents = [await store.models.document(version) for version in (1, 2, 3)]
        _equal("the documents", documents, [b"one", b"two\0", None])
        _equal("the active one", await store.models.active(), 1)
        await store.models.activate(2)
        _equal("the active one", await store.models.active(), 2)
        _equal("models.all()", await store.models.all(), [first, replace(second, activated=True)])
        await store.models.activate(0, meta={"pinned": "yes"})
        for version in (2, 0):
            record = ModelRecord(version, 1.0, 1, None, None, True)
            await _refused(store.models.add(record, b""), "already")
        await _refused(store.models.activate(9, meta={"pinned": "no"}), "no model 9")
        _equal("the active one", await store.models.active(), 0)
        _equal("the setting", await store.meta.get("pinned"), "yes")
        await store.models.activate(2)
        await _refused(store.models.remove([1, 2]), "model 2 is active")
        _equal("models.all()", len(await store.models.all()), 2)
        await store.models.remove([1, 7])
        _equal("models.all()", [one.version for one in await store.models.all()], [2])
        _equal("a removed document", await store.models.document(1), None)


@_check
async def fenced_models(stores: Stores) -> None:
    """A version goes live only in place of the one it was compared with, which nobody pinned."""
    pinned = {"pinned": "yes"}
    async with stores.new() as store:

        async def added(version: int, instead_of: int) -> bool:
            record = ModelRecord(version, 5.0, 10, None, None, activated=True)
            return await store.models.add(record, b"x", instead_of=instead_of, unless=pinned)

        _equal("the first", await added(1, instead_of=0), True)
        _equal("one compared with another", await added(2, instead_of=0), False)
        _equal("the active one", await store.models.active(), 1)
        await store.models.activate(1, meta=pinned)
        _equal("one in place of a pinned one", await added(3, instead_of=1), False)
        await store.models.activate(1, meta={"pinned": "no"})
        _equal("one in place of the active one", await added(4, instead_of=1), True)
        _equal("the active one", await store.models.active(), 4)
        went = [record.activated for record in await store.models.all()]
        _equal("which went live", went, [True, False, False, True])


@_check
async def settled(stores: Stores) -> None:
    """If several settle on a setting at the same time, the first decides."""
    async with stores.new() as store:
        await store.meta.set({"a": "1"})
        _equal(
            "what was there", await store.meta.settle({"a": "2", "b": "3"}), {"a": "1", "b": "3"}
        )
        _equal("meta.all()", await store.meta.all(), {"a": "1", "b": "3"})
        calls = (store.meta.settle({"c": str(number)}) for number in range(5))
        found = await asyncio.gather(*calls)
        _equal("what all found", {one["c"] for one in found}, {await store.meta.get("c")})


@_check
async def epochs(stores: Stores) -> None:
    """What was made of what another epoch remembered is refused, and leaves nothing."""
    async with stores.new() as store:
        await store.items.put("q", new_items(*"ab"), 1.0)
        now = store.epoch
        await store.log.write([ranking("r1", "ab")], epoch=now)
        await _refused(store.log.write([ranking("r2", "ab")], epoch=now + 1), "again")
        _equal("the log", await _log(store), [ranking("r1", "ab")])
        _equal("the epoch", store.epoch, now)


@_check
async def one_is_elected(stores: Stores) -> None:
    """A server that is alone does all that one does for all, and goes on doing it."""
    async with stores.new() as store:
        jobs = [await store.elected(job) for job in ("train", "roll up", "train")]
        _equal("what it is elected for", jobs, [True] * 3)


@_check
async def settings(stores: Stores) -> None:
    """Settings are kept, alone or with what they belong to."""
    async with stores.new() as store:
        await store.meta.set({"features": "[1]", "a": ""})
        await store.meta.set({"features": "☂"})
        _equal("meta.get('features')", await store.meta.get("features"), "☂")
        _equal("meta.all()", await store.meta.all(), {"a": "", "features": "☂"})
        one, item = {"features": "one"}, [NewItem("a", (1.0,))]
        await store.items.put("q", item, 5.0, meta=one)
        _equal("meta.all()", await store.meta.all(), {"a": "", "features": "one"})
        _equal("the catalog's version", await store.catalog.version(), 1)
        two = {"features": "two"}
        await _refused(store.items.put("q", item, 6.0, meta=two, known=0), "another server")
        await _refused(store.catalog.put([], 6.0, meta=two, known=0), "another server")
        _equal("meta.all()", await store.meta.all(), {"a": "", "features": "one"})
        await store.items.put("q", item, 7.0, meta=two, known=1)
        _equal("the catalog", await store.catalog.put([], 8.0, meta=one, known=2), (3, 0))


@_check
async def minutes(stores: Stores) -> None:
    """Minutes add up."""
    async with stores.new() as store:
        later = Minute(60.0, {"clicks": 1.0, "rankings": 2.0})
        await store.meta.set({}, [later, Minute(0.0, {"clicks": 5.0})])
        await store.meta.set({"totals": "2"}, [Minute(60.0, {"clicks": 1.5})])
        kept = [(minute.start, minute.values) for minute in await store.meta.minutes(0.0)]
        _equal("all", kept, [(0.0, {"clicks": 5.0}), (60.0, {"clicks": 2.5, "rankings": 2.0})])
        since = [minute.start for minute in await store.meta.minutes(1.0)]
        _equal("those since 1.0", since, [60.0])
        spans = [(minute.start, minute.values) for minute in await store.meta.sums(0.0, 120.0)]
        _equal("over two minutes", spans, [(0.0, {"clicks": 7.5, "rankings": 2.0})])
        since = [minute.start for minute in await store.meta.sums(1.0, 20.0)]
        _equal("over 20 seconds, since 1.0", since, [60.0])
        _equal("meta.get('totals')", await store.meta.get("totals"), "2")


@_check
async def room(stores: Stores) -> None:
    """A store on a disk tells how much room it takes."""
    async with stores.new() as store:
        size = await store.size()
        _equal("size().used above 0", size is None or size.used > 0, True)
        _equal("size().entries below 0", size is not None and size.entries < 0, False)


@_check
async def numbers(stores: Stores) -> None:
    """Numbers that a setting holds add up."""
    async with stores.new() as store:
        once = await store.meta.add("totals", {"lists": 2, "items": 1}, [Minute(0.0, {"a": 1.0})])
        _equal("the numbers", once, {"lists": 2, "items": 1})
        again = await store.meta.add("totals", {"lists": 3, "more": 1}, [Minute(0.0, {"a": 1.0})])
        _equal("the numbers", again, {"lists": 5, "items": 1, "more": 1})
        _equal("none", await store.meta.add("totals", {}), again)
        kept = json.loads(await store.meta.get("totals") or "")
        _equal("the setting", kept, again)
        _equal("the minutes", (await store.meta.minutes(0.0))[0].values, {"a": 2.0})


@_check
async def servers(stores: Stores) -> None:
    """Servers are listed from when they announce themselves until they leave."""
    async with stores.new() as store:
        _equal("servers()", await store.servers(), [])
        for name, about in (("two", "☂"), ("one", "old"), ("one", "new")):
            await store.announce(name, about)
        heard = await store.servers()
        _equal(
            "servers()", [(one.server, one.about) for one in heard], [("one", "new"), ("two", "☂")]
        )
        assert all(0.0 <= one.seconds < 60.0 for one in heard), f"the times of {heard}"
        await store.announce("two", None)
        await store.announce("three", None)
        _equal("servers()", [one.server for one in await store.servers()], ["one"])


# --- the whole -----------------------------------------------------------------------------------


@_check
async def opened_again(stores: Stores) -> None:
    """A store that was closed holds what it held, and goes on."""
    if not stores.keeps:
        return
    async with stores.named("again") as store:
        log = await fill(store)
        await store.log.roll_up(30.5)
        await store.models.add(ModelRecord(1, 5.0, 10, None, None, True), b"one")
        await store.meta.set({"key": "value"}, [Minute(60.0, {"clicks": 1.0})])
        before = await contents(store)
        state = await store.items.load("q")
    async with stores.named("again") as store:
        _equal("the store", await contents(store), before)
        loaded = await store.items.load("q")
        assert state is not None, "the query is unknown"
        assert loaded is not None, "the query is unknown when the store is opened again"
        _equal("the version", loaded.version, state.version)
        _equal("an event it knows", await _statuses(store, log[-1:]), ["duplicate"])
        _equal("a new list", await _statuses(store, [ranking("new", "abc")]), ["accepted"])


@_check
async def random_histories(stores: Stores) -> None:
    """Random histories make the same of a store as of the one in memory."""
    for seed in range(5):
        async with stores.new() as store:
            memory, lists = MemoryStore(), list[RankingEntry]()
            for one in (store, memory):
                await one.items.put("q", new_items(*"abcdef"), 1.0)
                await one.items.put("p", new_items(*"abcdef"), 1.0)
            chance = random.Random(seed)
            for turn in range(60):
                call = _random_call(chance, float(turn + 10), lists)
                found = await call(store)
                _equal(f"turn {turn} of history {seed}", found, await call(memory))
            _equal(f"history {seed}", await contents(store), await contents(memory))


def _random_call(
    chance: random.Random, time: float, lists: list[RankingEntry]
) -> Callable[[Store], Awaitable[object]]:
    """Return something to do with a store; `lists` are those that events may cite."""
    query, order = chance.choice("qp"), "".join(chance.sample("abcdef", chance.randint(1, 4)))
    kinds = ["put", "withdraw", "share", "unshare", "rank", "rank", "events", "events", "roll up"]
    kind, items = chance.choice(kinds), new_items(*order, width=chance.randint(0, 3))
    if kind == "put":
        return lambda store: store.items.put(query, items, time)
    if kind == "share":
        return lambda store: store.catalog.put(items, time)
    if kind == "unshare":
        return lambda store: store.catalog.remove(order, time)
    if kind == "withdraw":
        return lambda store: store.items.withdraw(query, order[0], time)
    if kind == "roll up":
        before = time - chance.uniform(0.0, 30.0)
        lists[:] = [served for served in lists if served.time >= before]
        return lambda store: store.log.roll_up(before)
    if kind == "rank":
        counted = chance.random() < 0.5
        offset = chance.choice([0, 0, 3, 10, 290])
        seen = tuple(chance.choice([0, 5]) for _ in order) if chance.random() < 0.3 else ()
        served = ranking(f"r{time}", order, query=query, time=time, counted=counted)
        lists.append(replace(served, offset=offset, seen=seen))
        return lambda store: store.log.write(lists[-1:])
    entries = _random_events(chance, time, lists)
    return lambda store: store.log.write(entries)


def _random_entries(
    chance: random.Random, time: float, lists: list[RankingEntry], epoch: int
) -> list[Operation]:
    """Return lists of an epoch and events about these and others; the ids of events are new."""
    entries: list[Operation] = []
    for number in range(chance.randint(1, 8)):
        order = "".join(chance.sample("abcdef", chance.randint(1, 4)))
        counted = chance.random() < 0.7
        served = ranking(f"r{time} {number}", order, query=chance.choice("qp"), time=time)
        lists.append(replace(served, counted=counted))
        entries.append(lists[-1])
    for number, entry in enumerate(_random_events(chance, time, lists[-40:], most=20)):
        entries.append(replace(entry, event_id=f"e{time} {number}"))
    return [replace(entry, epoch=epoch) for entry in entries]


def _random_events(
    chance: random.Random, time: float, lists: list[RankingEntry], most: int = 3
) -> list[EventEntry]:
    """Return events about some lists."""
    entries: list[EventEntry] = []
    for served in chance.sample(lists, min(len(lists), most)):
        name, item = f"e{chance.randrange(40)}", chance.choice(served.items)
        kind = chance.choice([*BEHAVIORS, "click", "impression", "bookmark"])
        shows = not served.counted and kind != "bookmark"
        entries.append(event(name, served, item, kind, shows=shows, time=time))
    return entries


@_check
async def sound(stores: Stores) -> None:
    """A store that nobody damaged has no faults, and was last changed in the past, if ever."""
    began = time.time()
    async with stores.named("sound") as store:
        assert store.touched is None or store.touched <= began + 1.0, f"{store.touched} is ahead"
        await fill(store)
        _equal("faults()", await store.faults(), [])
        await store.log.roll_up(30.5)
        _equal("faults()", await store.faults(), [])
    if stores.keeps:
        async with stores.named("sound") as store:
            _equal("faults()", await store.faults(), [])


@_check
async def search(stores: Stores) -> None:
    """Queries are found by their names, a page at a time."""
    async with stores.new() as store:
        for name in ("tea", "green tea", "ätea", "teapot", "te", "☂"):
            await store.items.put(name, new_items("a"), 1.0)
        await store.items.put("tea", new_items("b"), 2.0)
        _equal("items.find()", await store.items.find(limit=2), [("green tea", 1), ("te", 1)])
        later = await store.items.find(after="te", limit=9)
        _equal("what follows", later, [("tea", 2), ("teapot", 1), ("ätea", 1), ("☂", 1)])
        _equal("a prefix", await store.items.find("tea"), [("tea", 2), ("teapot", 1)])
        _equal("a prefix, later", await store.items.find("tea", after="tea"), [("teapot", 1)])
        _equal("a prefix of none", await store.items.find("x"), [])
        inside = [name for name, _ in await store.items.find(contains="tea")]
        _equal("a part", inside, ["green tea", "tea", "teapot", "ätea"])
        _equal("both", await store.items.find("t", "pot"), [("teapot", 1)])


@_check
async def deleted_queries(stores: Stores) -> None:
    """A deleted query is gone with its history, and another of its name begins anew."""
    async with stores.new() as store:
        await fill(store)
        others, before = await _log(store), (await _state(store)).version
        kept = [entry for entry in others if entry.query != "q"]
        await store.log.roll_up(25.0)
        gone = await store.deletions.query("q", "digest", 90.0)
        assert gone is not None, "the query was there"
        _equal("the proof", gone, Deletion(90.0, "query", "digest", 1, 1, 3))
        _equal("the proofs", await store.deletions.all(), [gone])
        _equal("the log", await _log(store), kept)
        _equal("the query", await store.items.load("q"), None)
        _equal("the queries", await store.items.queries(), ["other query ☂"])
        _equal("its list", await store.log.ranking("r2"), None)
        _equal("faults()", await store.faults(), [])
        assert await store.log.last_time() >= 90.0, "times never go back"
        _equal("again", await store.deletions.query("q", "digest", 91.0), None)
        version = await store.items.put("q", new_items("z"), 95.0)
        assert version > before, f"the version {version} was there before, or may have been"
        _equal("its version", version % LIFE, 1)
        _equal("its counts", await _counts(store), {"z": {}})
        await _refused(store.log.write([ranking("r9", "a", time=96.0)]), "no item")
        place = Hint((0,), (True,), before // LIFE)
        try:
            await store.log.write([ranking("r9", "a", time=96.0, hint=place)])
        except UnknownQuery:
            pass
        else:
            raise AssertionError("a list of another life was logged")
        place = Hint((0,), (True,), version // LIFE)
        await store.log.write([ranking("r9", "z", time=96.0, hint=place)])
        _equal("its counts", await _counts(store), {"z": {(0, 1): 1}})


@_check
async def deleted_items(stores: Stores) -> None:
    """A deleted item leaves a nameless place, and what is counted stays."""
    async with stores.new() as store:
        await fill(store)
        await store.items.put("more", new_items("a", "b"), 80.0)
        await store.catalog.put(new_items("a"), 81.0)
        before, version = await _counts(store), (await _state(store)).version
        first = first_shown(await store.items.load("q"))
        found = await store.deletions.item("a", "gone", "digest", 90.0)
        assert found is not None, "it was there"
        _equal("the proof", found[0], Deletion(90.0, "item", "digest", 2))
        _equal("its queries", sorted(found[1]), ["more", "q"])
        state = await _state(store)
        _equal("the version", state.version, version + 1)
        _equal("the names", list(state.ids), ["gone", "b", "c", "d"])
        _equal("its features", np.isnan(state.features[0]).all(), True)
        _equal("the candidates", state.active.tolist(), [False, True, True, False])
        renamed = {"gone" if name == "a" else name: counts for name, counts in before.items()}
        _equal("the counts", await _counts(store), renamed)
        shown_then = {"gone" if name == "a" else name: time for name, time in first.items()}
        _equal("first_shown", first_shown(state), shown_then)
        names = {name for entry in await _log(store) for name in items_of(entry)}
        assert "a" not in names, "the log still names it"
        _equal("the catalog", await store.catalog.read(["a"]), {})
        served = await store.log.ranking("r1")
        assert served is not None, "the list stays"
        _equal("its list", served.items, ("gone", "b", "c", "d"))
        again = event("e5b", served, "gone", "dwell>=30", time=95.0)
        _equal("a second click", await _statuses(store, [again]), ["duplicate"])
        _equal("faults()", await store.faults(), [])
        _equal("again", await store.deletions.item("a", "gone2", "digest", 96.0), None)
        await store.items.put("q", new_items("a"), 97.0)
        _equal("a new one", list((await _state(store)).ids), ["gone", "b", "c", "d", "a"])


@_check
async def deleted_users(stores: Stores) -> None:
    """Lists of a deleted user are nobody's, and count."""
    async with stores.new() as store:
        await fill(store)
        more = ranking("r4", "ab", time=75.0, user="other")
        await store.log.write([more])
        before = await _counts(store)
        proof = await store.deletions.user("u", "digest", 90.0)
        _equal("the proof", proof, Deletion(90.0, "user", "digest", rankings=1))
        users = [entry.user for entry in await _log(store) if isinstance(entry, RankingEntry)]
        _equal("the users", users, [None, None, None, "other"])
        served = await store.log.ranking("r1")
        assert served is not None, "the list stays"
        _equal("its user", served.user, None)
        _equal("the counts", await _counts(store), before)
        nobody = await store.deletions.user("u", "digest", 91.0)
        _equal("again", nobody, Deletion(91.0, "user", "digest"))
        await store.deletions.purge()
        await store.deletions.restore([proof])
        _equal("the proofs", await store.deletions.all(), [proof, nobody, proof])
        _equal("the counts", await _counts(store), before)
