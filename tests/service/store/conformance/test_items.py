"""Checks of queries and their items, and of the catalog."""

from __future__ import annotations

import numpy as np

from ebrank.service.store.base import Store
from ebrank.service.store.records import EventEntry, NewItem, RankingEntry
from tests.service.histories import bits, catalog, contents, counts, fill, new_items
from tests.service.store.checking import counts_of, log_of, state_of


async def test_empty(store: Store) -> None:
    """A new store knows nothing."""
    held = await contents(store)
    assert {name: value for name, value in held.items() if value} == {}
    assert await store.items.put("q", [], 1.0) == 0
    assert await store.items.load("q") is None
    assert await store.items.snapshot("q") is None
    assert await store.log.ranking("r") is None
    assert await store.log.length() == 0
    assert await store.models.document(1) is None
    assert await store.meta.get("features") is None
    assert (await store.log.write([]))[:4] == ([], {}, 0, 0)
    assert await store.items.tally() == (0, ())
    assert await store.catalog.version() == 0
    assert await store.catalog.read(["a"]) == {}
    assert await store.catalog.tally() == (0, ())
    await store.flush()


async def test_withdrawn(store: Store) -> None:
    """A withdrawn item keeps its history and may come back."""
    await fill(store)
    before = await state_of(store)
    for query, item in (("q", "nobody"), ("nothing", "a")):
        assert await store.items.withdraw(query, item, 79.0) is None
    version = await store.items.withdraw("q", "a", 80.0)
    state = await state_of(store)
    assert (version, state.version) == (before.version + 1, before.version + 1)
    assert state.active.tolist() == [False, True, True, False]
    assert await store.log.last_time() == 80.0
    await store.items.put("q", new_items("a"), 90.0)
    state = await state_of(store)
    assert state.active.tolist() == [True, True, True, False]
    assert state.entered[0] == before.entered[0]
    assert counts(state) == counts(before)


async def test_item_order(store: Store) -> None:
    """Items stand in the order in which they entered, with their last features."""
    nan = float("nan")
    await store.items.put("q", [NewItem("b", (1.0, nan)), NewItem("a", (3.0, 0.1))], 5.0)
    await store.items.put("q", new_items("c", "a"), 6.0)
    state = await state_of(store)
    assert (state.query, list(state.ids)) == ("q", ["b", "a", "c"])
    expected = np.array([[1.0, nan], [97.0, 97.0], [99.0, 99.0]], np.float32)
    assert state.features.dtype == np.dtype(np.float32)
    assert np.array_equal(state.features, expected, equal_nan=True)
    assert state.entered.tolist() == [5.0, 5.0, 6.0]
    assert np.isnan(state.first_shown).all()
    assert state.active.tolist() == [True] * 3
    assert counts(state) == {"b": {}, "a": {}, "c": {}}
    layout = state.counts.shape, state.counts.dtype
    assert layout == ((3, 2, 1), np.dtype(np.int32))
    assert await store.log.last_time() == 6.0


async def test_ownership(store: Store) -> None:
    """The caller owns what is loaded."""
    await fill(store)
    state, before = await state_of(store), bits(await store.items.load("q"))
    state.counts[:] = 7
    state.features[:] = 0.0
    state.active[:] = False
    assert bits(await store.items.load("q")) == before


async def test_many_items(store: Store) -> None:
    """A query of thousands of items is like any other."""
    items = [NewItem(f"i{number}", (float(number),)) for number in range(3000)]
    await store.items.put("q", items, 1.0)
    await store.items.put("q", [NewItem("i7", (0.5,)), NewItem("last", (1.0,))], 2.0)
    state = await state_of(store)
    assert list(state.ids) == [*(item.id for item in items), "last"]
    assert state.features[7].tolist() == [0.5]
    assert state.version == 2


async def test_search(store: Store) -> None:
    """Queries are found by their names, a page at a time."""
    for name in ("tea", "green tea", "ätea", "teapot", "te", "☂"):
        await store.items.put(name, new_items("a"), 1.0)
    await store.items.put("tea", new_items("b"), 2.0)
    assert await store.items.find(limit=2) == [("green tea", 1), ("te", 1)]
    later = await store.items.find(after="te", limit=9)
    assert later == [("tea", 2), ("teapot", 1), ("ätea", 1), ("☂", 1)]
    assert await store.items.find("tea") == [("tea", 2), ("teapot", 1)]
    assert await store.items.find("tea", after="tea") == [("teapot", 1)]
    assert await store.items.find("x") == []
    inside = [name for name, _ in await store.items.find(contains="tea")]
    assert inside == ["green tea", "tea", "teapot", "ätea"]
    assert await store.items.find("t", "pot") == [("teapot", 1)]


async def test_names(store: Store) -> None:
    """Any text without NUL is a name."""
    texts = ["", " ", "'; --", "%_\\", "☂", "e\u0301", "é", "a\nb", "x" * 600, "\U0010ffff"]
    for number, text in enumerate(texts):
        query, item = f"{text}☂", f"{text}!"
        items = [NewItem(item, (1.0,)), NewItem("", (2.0,))]
        await store.items.put(query, items, 1.0)
        served = RankingEntry(f"r{text}{number}", query, 2.0, 0, (item, ""))
        name = f"e{text}{number}"
        click = EventEntry(name, served.id, query, item, text, 1, 1, False, 3.0, 3.0)
        await store.log.write([served, click])
        assert (await log_of(store))[-2:] == [served, click]
        assert await store.log.ranking(served.id) == served
        expected = {item: {(0, 1): 1, (1, 1): 1}, "": {(0, 2): 1}}
        assert await counts_of(store, query) == expected


# --- the catalog, which queries share ------------------------------------------------------------


async def test_catalog_rows(store: Store) -> None:
    """The catalog holds the last row of each item, until it is removed."""
    items = [NewItem("ä", (1.0, float("nan"))), NewItem("b", (2.0,)), NewItem("a", (3.0, 4.0))]
    assert await store.catalog.put(items, 5.0) == (1, 3)
    assert await store.log.last_time() == 5.0
    names = [name async for name, _ in store.catalog.entries()]
    assert names == ["a", "b", "ä"]
    for after, limit in ((None, 2), ("a", 2), ("aa", 1), ("ä", 9)):
        page = [name for name, _ in await store.catalog.find(after, limit)]
        following = [name for name in names if after is None or name > after]
        assert page == following[:limit]
    assert await store.catalog.tally() == (3, (3, 1))
    assert await store.catalog.put(items, 6.0) == (1, 0)
    some = [NewItem("b", (2.0, 0.5)), NewItem("c", ()), items[0]]
    assert await store.catalog.put(some, 7.0) == (2, 2)
    assert await store.log.last_time() == 7.0
    rows = {"a": [3.0, 4.0], "b": [2.0, 0.5], "c": [], "ä": [1.0, None]}
    assert await catalog(store) == rows
    read = await store.catalog.read(["b", "nobody"])
    assert list(read) == ["b"]
    row = read["b"]
    assert row.dtype == np.dtype(np.float32)
    row[:] = 7.0
    assert await catalog(store) == rows


async def test_catalog_changes(store: Store) -> None:
    """A reader finds out what has changed since it last looked, be that much or little."""
    names = [f"i{number}" for number in range(1200)]
    await store.catalog.put([NewItem(name, (1.0,)) for name in names], 1.0)
    await store.catalog.put([NewItem(name, (2.0,)) for name in names[:700]], 2.0)
    await store.catalog.put([NewItem(name, (3.0,)) for name in names[650:660]], 3.0)
    some, most = names[640:655] + names[1000:1010], names[600:]
    for asked in (some, most, names[655:656], ["nobody"]):
        for since in (0, 1, 2, 3):
            changed = [names, names[:700], names[650:660], []][since]
            read = await store.catalog.read(asked, since)
            expected = [name for name in asked if name in set(changed)]
            assert sorted(read) == sorted(expected)
            values = {name: float(row[0]) for name, row in read.items()}
            numbers = {
                name: 1.0 + (name in names[:700]) + (name in names[650:660]) for name in expected
            }
            assert values == numbers
