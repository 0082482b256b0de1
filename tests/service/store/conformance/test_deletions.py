"""Deletions: what must be gone, also if one is interrupted, and what stays.

Random histories (`whole`) delete queries, items and users, and retract what users did, as the store
in memory does. It shares its code with others, so what must be gone is written out here.
"""

from __future__ import annotations

import asyncio

import numpy as np

from ebrank.service.store.base import Store, UnknownQuery
from ebrank.service.store.counting import items_of
from ebrank.service.store.records import LIFE, Deletion, Hint, RankingEntry
from tests.service.histories import contents, counts, event, fill, new_items, ranking
from tests.service.store.checking import Stores, log_of, refused, state_of


async def test_interrupted_deletions(stores: Stores) -> None:
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
            assert await store.faults() == []
            gone, proofs = await store.items.load("q") is None, await store.deletions.all()
            assert len(proofs) == int(gone)
            again = await store.deletions.query("q", "digest", 91.0)
            whole = Deletion(90.0 if gone else 91.0, "query", "digest", 1, 2, 4)
            assert await store.deletions.all() == [whole]
            assert again in (whole, None)
            assert await log_of(store) == kept
            assert await store.faults() == []


async def test_deleted_queries(store: Store) -> None:
    """A deleted query is gone with its history, and another of its name begins anew."""
    await fill(store)
    kept, before = [one for one in await log_of(store) if one.query != "q"], await state_of(store)
    gone = await store.deletions.query("q", "digest", 90.0)
    assert gone == Deletion(90.0, "query", "digest", 1, 2, 4)
    assert await log_of(store) == kept
    assert await store.items.queries() == ["other query ☂"]
    assert await store.log.last_time() == 90.0
    version = await store.items.put("q", new_items("z"), 95.0)
    assert version > before.version
    assert counts(await store.items.load("q")) == {"z": {}}
    of_another_life = [ranking("r9", "a", hint=Hint((0,), (True,), before.version // LIFE))]
    await refused(store, lambda: store.log.write(of_another_life), UnknownQuery)


async def test_deleted_items(store: Store) -> None:
    """A deleted item leaves a nameless place without features, and what is counted stays."""
    await fill(store)
    await store.catalog.put(new_items("a"), 81.0)
    before, shared = await state_of(store), await store.catalog.version()
    deleted = await store.deletions.item("a", "gone", "digest", 90.0)
    assert deleted == (Deletion(90.0, "item", "digest", 1), ["q"])
    state = await state_of(store)
    assert state.version == before.version + 1
    assert list(state.ids) == ["gone", "b", "c", "d"]
    assert np.isnan(state.features[0]).all()
    assert state.active.tolist() == [False, True, True, False]
    assert [*counts(state).values()] == [*counts(before).values()]
    names = {name for entry in await log_of(store) for name in items_of(entry)}
    assert "a" not in names
    assert await store.catalog.read(["a"]) == {}
    assert await store.catalog.version() == shared + 1
    assert await store.log.last_time() == 90.0


async def test_deleted_users(store: Store) -> None:
    """Lists of a deleted user are nobody's, and count."""
    await fill(store)
    await store.log.write([ranking("r4", "ab", time=75.0, user="other")])
    before = counts(await store.items.load("q"))
    proof = await store.deletions.user("u", "digest", 90.0)
    assert proof == Deletion(90.0, "user", "digest", rankings=1)
    users = [entry.user for entry in await log_of(store) if isinstance(entry, RankingEntry)]
    assert users == [None, None, None, "other"]
    assert counts(await store.items.load("q")) == before
    assert await store.log.last_time() == 90.0


async def test_purged(store: Store) -> None:
    """All files are written again without what was deleted, and proofs from elsewhere are kept."""
    await fill(store)
    proof = await store.deletions.user("u", "digest", 90.0)
    before = await contents(store)
    await store.deletions.purge()
    assert await contents(store) == before
    await store.deletions.restore([proof])
    assert await store.deletions.all() == [proof, proof]


async def test_expired_queries(store: Store) -> None:
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

    assert await expired(0.5) == ["unused"]
    assert await expired(8 * day) == []
    await store.log.roll_up(2 * day)
    assert await expired(8 * day, most=1) == ["listed"]
    assert await expired(8 * day) == []
    await store.log.roll_up(8 * day)
    assert await expired(8 * day) == ["clicked"]
    assert await store.items.queries() == ["young"]
    assert await log_of(store) == [lists["young"]]
    assert await store.deletions.all() == []
    assert await store.faults() == []
    await refused(store, lambda: store.log.write([lists["listed"]]))
    version = await store.items.put("listed", new_items("z"), 10 * day)
    assert version > versions["listed"]
    assert await expired(9.5 * day) == []
    await store.log.roll_up(9.5 * day)
    assert await expired(9.5 * day) == ["young"]
    await store.items.put("also", new_items(*"z"), 10 * day)
    expiring = store.deletions.expire(11 * day, 9)
    assert await anext(expiring) == "listed"
    if await store.items.load("also") is not None:  # it may be gone together with the other
        await store.log.write([ranking("late", "z", query="also", time=20 * day)])
        assert [query async for query in expiring] == []
