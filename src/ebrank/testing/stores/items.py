"""Checks of queries and their items."""

from __future__ import annotations

import numpy as np

from ebrank.service.store.records import EventEntry, NewItem, RankingEntry
from ebrank.testing.histories import bits, catalog, counts, fill, new_items
from ebrank.testing.stores.checking import Stores, counts_of, equal, log_of, state_of


async def empty(stores: Stores) -> None:
    """A new store knows nothing."""
    async with stores.new() as store:
        equal("items.queries()", await store.items.queries(), [])
        equal("items.load('q')", await store.items.load("q"), None)
        equal("items.snapshot('q')", await store.items.snapshot("q"), None)
        equal("log.ranking('r')", await store.log.ranking("r"), None)
        equal("log.entries()", await log_of(store), [])
        equal("log.length()", await store.log.length(), 0)
        equal("log.last_time()", await store.log.last_time(), 0.0)
        equal("models.all()", await store.models.all(), [])
        equal("models.document(1)", await store.models.document(1), None)
        equal("models.active()", await store.models.active(), 0)
        equal("meta.get('features')", await store.meta.get("features"), None)
        equal("meta.all()", await store.meta.all(), {})
        equal("meta.minutes(0.0)", await store.meta.minutes(0.0), [])
        equal("log.write([])", (await store.log.write([]))[:4], ([], {}, 0, 0))
        equal("items.tally()", await store.items.tally(), (0, []))
        equal("catalog.version()", await store.catalog.version(), 0)
        equal("catalog.read(['a'])", await store.catalog.read(["a"]), {})
        equal("the catalog", await catalog(store), {})
        equal("catalog.tally()", await store.catalog.tally(), (0, []))
        await store.flush()


async def item_order(stores: Stores) -> None:
    """Items stand in the order in which they entered, with their last features."""
    async with stores.new() as store:
        nan = float("nan")
        await store.items.put("q", [NewItem("b", (1.0, nan)), NewItem("a", (3.0, 0.1))], 5.0)
        await store.items.put("q", new_items("c", "a"), 6.0)
        state = await state_of(store)
        equal("query and ids", (state.query, list(state.ids)), ("q", ["b", "a", "c"]))
        expected = np.array([[1.0, nan], [97.0, 97.0], [99.0, 99.0]], np.float32)
        equal("the type of features", state.features.dtype, np.dtype(np.float32))
        assert np.array_equal(state.features, expected, equal_nan=True), "features differ"
        equal("entered", state.entered.tolist(), [5.0, 5.0, 6.0])
        assert np.isnan(state.first_shown).all(), "first_shown of an item never shown is not NaN"
        equal("active", state.active.tolist(), [True] * 3)
        equal("the counts", counts(state), {"b": {}, "a": {}, "c": {}})
        found = state.counts.shape, state.counts.dtype
        equal("the shape and type of counts", found, ((3, 2, 1), np.dtype(np.int32)))
        equal("log.last_time()", await store.log.last_time(), 6.0)


async def query_order(stores: Stores) -> None:
    """Queries stand in the order in which they were first given; no items make no query."""
    async with stores.new() as store:
        for query in ("z", "a", "m", "a"):
            await store.items.put(query, new_items("x"), 1.0)
        equal("put without items", await store.items.put("none", [], 1.0), 0)
        equal("items.queries()", await store.items.queries(), ["z", "a", "m"])
        equal("items.load('none')", await store.items.load("none"), None)


async def withdrawn(stores: Stores) -> None:
    """A withdrawn item keeps its history and may come back."""
    async with stores.new() as store:
        await fill(store)
        before = await counts_of(store)
        assert await store.items.withdraw("q", "a", 80.0) is not None, "it was a candidate"
        for query, item in (("q", "a"), ("q", "nobody"), ("nothing", "a")):
            found = await store.items.withdraw(query, item, 81.0)
            equal(f"withdrawing {item!r} of {query!r}", found, None)
        state = await state_of(store)
        equal("active", state.active.tolist(), [False, True, True, False])
        equal("log.last_time()", await store.log.last_time(), 80.0)
        await store.items.put("q", new_items("a"), 90.0)
        state = await state_of(store)
        equal("active", state.active.tolist(), [True, True, True, False])
        equal("entered of the item that came back", state.entered[0], 1.0)
        equal("the counts", counts(state), before)


async def widths(stores: Stores) -> None:
    """A row of features may end before others do; what follows is missing."""
    async with stores.new() as store:
        mixed = [*new_items("a"), *new_items("b", width=3), *new_items("c", width=0)]
        await store.items.put("q", mixed, 1.0)
        await store.items.put("q", new_items("a", width=1), 2.0)
        nan = float("nan")
        expected = np.array([[97.0, nan, nan], [98.0] * 3, [nan] * 3], np.float32)
        found = (await state_of(store)).features
        assert np.array_equal(found, expected, equal_nan=True), f"features are {found}"
        await store.items.put("p", new_items("z", width=0), 3.0)
        equal("features of no width", (await state_of(store, "p")).features.shape, (1, 0))
        equal("items.tally()", await store.items.tally(), (4, [2, 1, 1]))


async def ownership(stores: Stores) -> None:
    """The caller owns what is loaded."""
    async with stores.new() as store:
        await fill(store)
        state, before = await state_of(store), bits(await store.items.load("q"))
        state.counts[:] = 7
        state.features[:] = 0.0
        state.active[:] = False
        equal("the query, loaded again", bits(await store.items.load("q")), before)


async def many_items(stores: Stores) -> None:
    """A query of thousands of items is like any other."""
    async with stores.new() as store:
        items = [NewItem(f"i{number}", (float(number),)) for number in range(3000)]
        await store.items.put("q", items, 1.0)
        await store.items.put("q", [NewItem("i7", (0.5,)), NewItem("last", (1.0,))], 2.0)
        state = await state_of(store)
        equal("the ids", list(state.ids), [*(item.id for item in items), "last"])
        equal("a feature that was changed", state.features[7].tolist(), [0.5])
        equal("the version", state.version, 2)


async def search(stores: Stores) -> None:
    """Queries are found by their names, a page at a time."""
    async with stores.new() as store:
        for name in ("tea", "green tea", "ätea", "teapot", "te", "☂"):
            await store.items.put(name, new_items("a"), 1.0)
        await store.items.put("tea", new_items("b"), 2.0)
        equal("items.find()", await store.items.find(limit=2), [("green tea", 1), ("te", 1)])
        later = await store.items.find(after="te", limit=9)
        equal("what follows", later, [("tea", 2), ("teapot", 1), ("ätea", 1), ("☂", 1)])
        equal("a prefix", await store.items.find("tea"), [("tea", 2), ("teapot", 1)])
        equal("a prefix, later", await store.items.find("tea", after="tea"), [("teapot", 1)])
        equal("a prefix of none", await store.items.find("x"), [])
        inside = [name for name, _ in await store.items.find(contains="tea")]
        equal("a part", inside, ["green tea", "tea", "teapot", "ätea"])
        equal("both", await store.items.find("t", "pot"), [("teapot", 1)])


async def names(stores: Stores) -> None:
    """Any text without NUL is a name."""
    texts = ["", " ", "'; --", "%_\\", "☂", "e\u0301", "é", "a\nb", "x" * 600, "\U0010ffff"]
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
            equal("the end of the log", (await log_of(store))[-2:], [served, click])
            equal("the ranking", await store.log.ranking(served.id), served)
            expected = {item: {(0, 1): 1, (1, 1): 1}, "": {(0, 2): 1}}
            equal("the counts", await counts_of(store, query), expected)
