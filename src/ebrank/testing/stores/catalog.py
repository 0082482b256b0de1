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
        for after, limit in ((None, 2), ("a", 2), ("aa", 1), ("ä", 9)):
            page = [name for name, _ in await store.catalog.find(after, limit)]
            following = [name for name in names if after is None or name > after]
            equal(f"{limit} names after {after!r}", page, following[:limit])
        equal("catalog.tally()", await store.catalog.tally(), (3, [3, 1]))
        equal("the same rows again", await store.catalog.put(items, 6.0), (1, 0))
        some = [NewItem("b", (2.0, 0.5)), NewItem("c", ()), items[0]]
        equal("two other rows", await store.catalog.put(some, 7.0), (2, 2))
        equal("log.last_time()", await store.log.last_time(), 7.0)
        rows = {"a": [3.0, 4.0], "b": [2.0, 0.5], "c": [], "ä": [1.0, None]}
        equal("the catalog", await catalog(store), rows)
        found = await store.catalog.read(["b", "nobody"])
        equal("the items that are there", list(found), ["b"])
        row = found["b"]
        equal("the type of a row", row.dtype, np.dtype(np.float32))
        row[:] = 7.0
        equal("the catalog, read again", await catalog(store), rows)


async def catalog_changes(stores: Stores) -> None:
    """A reader finds out what has changed since it last looked, be that much or little."""
    async with stores.new() as store:
        names = [f"i{number}" for number in range(1200)]
        await store.catalog.put([NewItem(name, (1.0,)) for name in names], 1.0)
        await store.catalog.put([NewItem(name, (2.0,)) for name in names[:700]], 2.0)
        await store.catalog.put([NewItem(name, (3.0,)) for name in names[650:660]], 3.0)
        some, most = names[640:655] + names[1000:1010], names[600:]
        for asked in (some, most, names[655:656], ["nobody"]):
            for since in (0, 1, 2, 3):
                changed = [names, names[:700], names[650:660], []][since]
                found = await store.catalog.read(asked, since)
                expected = [name for name in asked if name in set(changed)]
                equal(f"what changed since {since}", sorted(found), sorted(expected))
                told = {name: float(row[0]) for name, row in found.items()}
                numbers = {
                    name: 1.0 + (name in names[:700]) + (name in names[650:660])
                    for name in expected
                }
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
