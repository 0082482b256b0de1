"""Checks of deletion: what must be gone, and what stays."""

from __future__ import annotations

import asyncio

import numpy as np

from ebrank.service.store.base import Store, UnknownQuery
from ebrank.service.store.counting import items_of
from ebrank.service.store.records import LIFE, Deletion, Hint, RankingEntry
from ebrank.testing.histories import event, fill, first_shown, new_items, ranking
from ebrank.testing.stores.checking import (
    Stores,
    counts_of,
    equal,
    log_of,
    refused,
    state_of,
    statuses_of,
)


async def deleted_queries(store: Store) -> None:
    """A deleted query is gone with its history, and another of its name begins anew."""
    await fill(store)
    others, before = await log_of(store), (await state_of(store)).version
    kept = [entry for entry in others if entry.query != "q"]
    await store.log.roll_up(25.0)
    gone = await store.deletions.query("q", "digest", 90.0)
    assert gone is not None, "the query was there"
    equal("the proof", gone, Deletion(90.0, "query", "digest", 1, 1, 3))
    equal("the proofs", await store.deletions.all(), [gone])
    equal("the log", await log_of(store), kept)
    equal("the query", await store.items.load("q"), None)
    equal("the queries", await store.items.queries(), ["other query ☂"])
    equal("its list", await store.log.ranking("r2"), None)
    equal("faults()", await store.faults(), [])
    equal("log.last_time()", await store.log.last_time(), 90.0)
    equal("again", await store.deletions.query("q", "digest", 91.0), None)
    version = await store.items.put("q", new_items("z"), 95.0)
    assert version > before, f"the version {version} was there before, or may have been"
    equal("its version", version % LIFE, 1)
    equal("its counts", await counts_of(store), {"z": {}})
    of_no_item = [ranking("r9", "a", time=96.0)]
    await refused(store, lambda: store.log.write(of_no_item))
    place = Hint((0,), (True,), before // LIFE)
    of_another_life = [ranking("r9", "a", time=96.0, hint=place)]
    await refused(store, lambda: store.log.write(of_another_life), UnknownQuery)
    place = Hint((0,), (True,), version // LIFE)
    await store.log.write([ranking("r9", "z", time=96.0, hint=place)])
    equal("its counts", await counts_of(store), {"z": {(0, 1): 1}})


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
            gone, proofs = await store.items.load("q") is None, await store.deletions.all()
            equal("the number of proofs", len(proofs), int(gone))
            again = await store.deletions.query("q", "digest", 91.0)
            whole = Deletion(90.0 if gone else 91.0, "query", "digest", 1, 2, 4)
            equal("the proofs", await store.deletions.all(), [whole])
            assert again in (whole, None), f"the proof is {again!r}"
            equal("the log", await log_of(store), kept)
            equal("faults()", await store.faults(), [])


async def deleted_items(store: Store) -> None:
    """A deleted item leaves a nameless place, and what is counted stays."""
    await fill(store)
    await store.items.put("more", new_items("a", "b"), 80.0)
    await store.catalog.put(new_items("a"), 81.0)
    before, version = await counts_of(store), (await state_of(store)).version
    first, shared = first_shown(await store.items.load("q")), await store.catalog.version()
    deleted = await store.deletions.item("a", "gone", "digest", 90.0)
    assert deleted is not None, "it was there"
    equal("the proof", deleted[0], Deletion(90.0, "item", "digest", 2))
    equal("its queries", sorted(deleted[1]), ["more", "q"])
    state = await state_of(store)
    equal("the version", state.version, version + 1)
    equal("the names", list(state.ids), ["gone", "b", "c", "d"])
    equal("its features", np.isnan(state.features[0]).all(), True)
    equal("the candidates", state.active.tolist(), [False, True, True, False])
    renamed = {"gone" if name == "a" else name: counts for name, counts in before.items()}
    equal("the counts", await counts_of(store), renamed)
    shown_then = {"gone" if name == "a" else name: time for name, time in first.items()}
    equal("first_shown", first_shown(state), shown_then)
    names = {name for entry in await log_of(store) for name in items_of(entry)}
    assert "a" not in names, "the log still names it"
    equal("the catalog", await store.catalog.read(["a"]), {})
    equal("the catalog's version", await store.catalog.version(), shared + 1)
    equal("log.last_time()", await store.log.last_time(), 90.0)
    served = await store.log.ranking("r1")
    assert served is not None, "the list stays"
    equal("its list", served.items, ("gone", "b", "c", "d"))
    again = event("e5b", served, "gone", "dwell>=30", time=95.0)
    equal("a second click", await statuses_of(store, [again]), ["duplicate"])
    equal("faults()", await store.faults(), [])
    equal("again", await store.deletions.item("a", "gone2", "digest", 96.0), None)
    await store.items.put("q", new_items("a"), 97.0)
    equal("a new one", list((await state_of(store)).ids), ["gone", "b", "c", "d", "a"])


async def deleted_users(store: Store) -> None:
    """Lists of a deleted user are nobody's, and count."""
    await fill(store)
    more = ranking("r4", "ab", time=75.0, user="other")
    await store.log.write([more])
    before = await counts_of(store)
    proof = await store.deletions.user("u", "digest", 90.0)
    equal("the proof", proof, Deletion(90.0, "user", "digest", rankings=1))
    equal("log.last_time()", await store.log.last_time(), 90.0)
    users = [entry.user for entry in await log_of(store) if isinstance(entry, RankingEntry)]
    equal("the users", users, [None, None, None, "other"])
    served = await store.log.ranking("r1")
    assert served is not None, "the list stays"
    equal("its user", served.user, None)
    equal("the counts", await counts_of(store), before)
    nobody = await store.deletions.user("u", "digest", 91.0)
    equal("again", nobody, Deletion(91.0, "user", "digest"))
    await store.deletions.purge()
    await store.deletions.restore([proof])
    equal("the proofs", await store.deletions.all(), [proof, nobody, proof])
    equal("the counts", await counts_of(store), before)


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
