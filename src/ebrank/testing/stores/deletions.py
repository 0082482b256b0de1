"""Checks of deletions: what must be gone, also if one is interrupted, and what stays.

Random histories (`whole`) delete queries, items and users, and retract what users did, as the store
in memory does. It shares its code with others, so what must be gone is written out here.
"""

from __future__ import annotations

import asyncio

import numpy as np

from ebrank.service.store.base import Store, UnknownQuery
from ebrank.service.store.counting import items_of
from ebrank.service.store.records import LIFE, Deletion, Hint, RankingEntry
from ebrank.testing.histories import contents, counts, event, fill, new_items, ranking
from ebrank.testing.stores.checking import Stores, equal, log_of, refused, state_of


async def interrupted_deletions(stores: Stores) -> None:
    """A deletion that is interrupted has a proof or has not begun; asked for again, it is done."""
    for turns in range(6):
        async with stores.new() as store:
            await fill(store)
            kept = [entry for entry in await log_of(store) if entry.query != "q"]
            deleting = asyncio.create_task(store.deletions.query("q", "digest", 90.0))
            for _ in range(turns):
                await asyncio.sleep(0)
            deleting.cancel()
            await asyncio.wait([deleting])
            equal("faults() before it is finished", await store.faults(), [])
            gone, proofs = await store.items.load("q") is None, await store.deletions.all()
            equal("the number of proofs", len(proofs), int(gone))
            again = await store.deletions.query("q", "digest", 91.0)
            whole = Deletion(90.0 if gone else 91.0, "query", "digest", 1, 2, 4)
            equal("the proofs", await store.deletions.all(), [whole])
            assert again in (whole, None), f"the proof is {again!r}"
            equal("the log", await log_of(store), kept)
            equal("faults()", await store.faults(), [])


async def deleted_queries(store: Store) -> None:
    """A deleted query is gone with its history, and another of its name begins anew."""
    await fill(store)
    kept, before = [one for one in await log_of(store) if one.query != "q"], await state_of(store)
    gone = await store.deletions.query("q", "digest", 90.0)
    equal("the proof", gone, Deletion(90.0, "query", "digest", 1, 2, 4))
    equal("the log", await log_of(store), kept)
    equal("the queries", await store.items.queries(), ["other query ☂"])
    equal("log.last_time()", await store.log.last_time(), 90.0)
    version = await store.items.put("q", new_items("z"), 95.0)
    assert version > before.version, f"the version {version} was there before, or may have been"
    equal("its counts", counts(await store.items.load("q")), {"z": {}})
    of_another_life = [ranking("r9", "a", hint=Hint((0,), (True,), before.version // LIFE))]
    await refused(store, lambda: store.log.write(of_another_life), UnknownQuery)


async def deleted_items(store: Store) -> None:
    """A deleted item leaves a nameless place without features, and what is counted stays."""
    await fill(store)
    await store.catalog.put(new_items("a"), 81.0)
    before, shared = await state_of(store), await store.catalog.version()
    deleted = await store.deletions.item("a", "gone", "digest", 90.0)
    equal("the proof", deleted, (Deletion(90.0, "item", "digest", 1), ["q"]))
    state = await state_of(store)
    equal("the version", state.version, before.version + 1)
    equal("the names", list(state.ids), ["gone", "b", "c", "d"])
    equal("its features", np.isnan(state.features[0]).all(), True)
    equal("the candidates", state.active.tolist(), [False, True, True, False])
    equal("the counts", [*counts(state).values()], [*counts(before).values()])
    names = {name for entry in await log_of(store) for name in items_of(entry)}
    equal("the log names it", "a" in names, False)
    equal("the catalog", await store.catalog.read(["a"]), {})
    equal("the catalog's version", await store.catalog.version(), shared + 1)
    equal("log.last_time()", await store.log.last_time(), 90.0)


async def deleted_users(store: Store) -> None:
    """Lists of a deleted user are nobody's, and count."""
    await fill(store)
    await store.log.write([ranking("r4", "ab", time=75.0, user="other")])
    before = counts(await store.items.load("q"))
    proof = await store.deletions.user("u", "digest", 90.0)
    equal("the proof", proof, Deletion(90.0, "user", "digest", rankings=1))
    users = [entry.user for entry in await log_of(store) if isinstance(entry, RankingEntry)]
    equal("the users", users, [None, None, None, "other"])
    equal("the counts", counts(await store.items.load("q")), before)
    equal("log.last_time()", await store.log.last_time(), 90.0)


async def purged(store: Store) -> None:
    """All files are written again without what was deleted, and proofs from elsewhere are kept."""
    await fill(store)
    proof = await store.deletions.user("u", "digest", 90.0)
    before = await contents(store)
    await store.deletions.purge()
    equal("the store", await contents(store), before)
    await store.deletions.restore([proof])
    equal("the proofs", await store.deletions.all(), [proof, proof])


async def expired_queries(store: Store) -> None:
    """A query that nobody has used for long expires: all of it, as soon as its log is rolled up."""
    day = 86400.0
    for at, query in enumerate(("unused", "listed", "clicked", "young")):
        await store.items.put(query, new_items(*"ab"), at * 1.0)
    lists = {
        query: ranking(query, "ab", query=query, time=time)
        for query, time in (("listed", day), ("clicked", day), ("young", 9 * day))
    }
    await store.log.write([lists["listed"], lists["clicked"]])
    click = event("e", lists["clicked"], "a", time=5 * day)
    await store.log.write([click, lists["young"]])
    for query in ("unused", "listed"):  # which does not count as use
        await store.items.put(query, new_items("c"), 9 * day)
    versions = {query: (await state_of(store, query)).version for query in lists}

    async def expired(before: float, most: int = 9) -> list[str]:
        return [query async for query in store.deletions.expire(before, most)]

    equal("what expires first", await expired(0.5), ["unused"])
    equal("what is in the log", await expired(8 * day), [])
    await store.log.roll_up(2 * day)
    equal("what expires then", await expired(8 * day, most=1), ["listed"])
    equal("what has an event in the log", await expired(8 * day), [])
    await store.log.roll_up(8 * day)
    equal("what expires last", await expired(8 * day), ["clicked"])
    equal("the queries", await store.items.queries(), ["young"])
    equal("the log", await log_of(store), [lists["young"]])
    equal("the proofs", await store.deletions.all(), [])
    equal("faults()", await store.faults(), [])
    await refused(store, lambda: store.log.write([lists["listed"]]))
    version = await store.items.put("listed", new_items("z"), 10 * day)
    assert version > versions["listed"], f"the version {version} was there before"
    equal("what is new", await expired(9.5 * day), [])
    await store.log.roll_up(9.5 * day)
    equal("what is old", await expired(9.5 * day), ["young"])
    await store.items.put("also", new_items(*"z"), 10 * day)
    expiring = store.deletions.expire(11 * day, 9)
    equal("what is next", await anext(expiring), "listed")
    if await store.items.load("also") is not None:  # it may be gone together with the other
        await store.log.write([ranking("late", "z", query="also", time=20 * day)])
        equal("what was used meanwhile", [query async for query in expiring], [])
