"""Checks of the catalog, which queries share."""

from __future__ import annotations

import numpy as np

from ebrank.service.store.records import NewItem
from ebrank.testing.histories import catalog, new_items, ranking
from ebrank.testing.stores.checking import Stores, equal


async def catalog_rows(stores: Stores) -> None:
    """The catalog holds the last row of each item, until it is removed."""
    async with stores.new() as store:
        items = [NewItem("ä", (1.0, float("nan"))), NewItem("b", (2.0,)), NewItem("a", (3.0, 4.0))]
        equal("the first write", await store.catalog.put(items, 5.0), (1, 3))
        equal("log.last_time()", await store.log.last_time(), 5.0)
        names = [name async for name, _ in store.catalog.entries()]
        equal("the order of names", names, ["a", "b", "ä"])
        equal("catalog.tally()", await store.catalog.tally(), (3, [3, 1]))
        equal("the same rows again", await store.catalog.put(items, 6.0), (1, 0))
        some = [NewItem("b", (2.0, 0.5)), NewItem("c", ()), items[0]]
        equal("two other rows", await store.catalog.put(some, 7.0), (2, 2))
        equal("removing one of two", await store.catalog.remove(["a", "nobody"], 8.0), (3, 1))
        equal("removing it again", await store.catalog.remove(["a"], 9.0), (3, 0))
        equal("log.last_time()", await store.log.last_time(), 8.0)
        rows = {"b": [2.0, 0.5], "c": [], "ä": [1.0, None]}
        equal("the catalog", await catalog(store), rows)
        found = await store.catalog.read(["a", "b", "nobody"])
        assert found["a"] is None, "a removed item has a row"
        row = found["b"]
        assert row is not None, "an item that was put has no row"
        equal("the type of a row", row.dtype, np.dtype(np.float32))
        row[:] = 7.0
        equal("the catalog, read again", await catalog(store), rows)
        equal("an item that comes back", await store.catalog.put(items[2:], 10.0), (4, 1))
        equal("its row", (await catalog(store))["a"], [3.0, 4.0])


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
                equal(f"what changed since {since}", sorted(found), sorted(expected))
                gone = sorted(name for name, row in found.items() if row is None)
                equal("what is gone", gone, sorted(set(names[650:660]) & set(expected)))
                told = {float(row[0]) for row in found.values() if row is not None}
                here = set(expected) - set(names[650:660])
                numbers = {2.0 if name in set(names[:700]) else 1.0 for name in here}
                equal("the numbers", told, numbers)


async def catalog_found(stores: Stores) -> None:
    """A write to the log says which version of the catalog it found; settings make a new one."""
    async with stores.new() as store:
        await store.items.put("q", new_items("a"), 1.0)
        equal("the version", (await store.log.write([ranking("r1", "a")])).catalog, 0)
        await store.catalog.put(new_items("a"), 2.0, meta={"features": "one"})
        equal("the version", (await store.log.write([ranking("r2", "a")])).catalog, 1)
        equal("settings alone", await store.catalog.put([], 2.0, meta={"features": "two"}), (2, 0))
        equal("nothing at all", await store.catalog.put([], 3.0), (2, 0))
        equal("the version", (await store.log.write([ranking("r3", "a")])).catalog, 2)
        equal("the version of no entries", (await store.log.write([])).catalog, 2)
        equal("the setting", await store.meta.get("features"), "two")
