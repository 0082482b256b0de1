"""Recently used queries stay in memory; others take little of it, or none."""

from __future__ import annotations

import gc

import pytest

from ebrank.service.core.queries import Queries
from ebrank.service.store.items import StoredItems
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem, QueryState, RankingEntry
from tests.service.store.blocking import run


async def filled_store(queries: str) -> MemoryStore:
    """Return a store of queries with two items each."""
    store = MemoryStore()
    for query in queries:
        await store.items.put(query, [NewItem("x", (1.0,)), NewItem("y", (2.0,))], 0.0)
    return store


def test_the_longest_unused_query_is_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def session() -> None:
        store = await filled_store("abcd")
        queries = Queries(store, seed=0)
        a = await queries.get("a", 0.0)
        assert a is not None
        queries.room = 4 * a.size  # two as they are
        await queries.get("b", 0.0)
        assert await queries.get("a", 0.0) is a
        await queries.get("c", 0.0)  # three are too many: b is packed
        assert [live.state.query for live in queries.recent(9)] == ["c", "a"]
        loads: list[str] = []

        async def load(query: str) -> QueryState | None:
            loads.append(query)
            return await StoredItems.load(store.items, query)

        monkeypatch.setattr(store.items, "load", load)
        assert await queries.get("a", 0.0) is a
        assert await queries.get("b", 0.0) is not None
        assert loads == []
        queries.room = a.size  # one as it is, and none packed
        queries.trim()
        assert [live.state.query for live in queries.recent(9)] == ["b"]
        await queries.get("a", 0.0)
        assert loads == ["a"]
        assert await queries.get("nothing", 0.0) is None

    run(session())


def test_a_query_of_one_item_takes_a_few_hundred_bytes() -> None:
    queries = Queries(MemoryStore(), seed=0, room=10**6)
    keys = [f"p{column}" for column in range(20)]
    for number in range(1000):
        live = queries.empty(f"a query of three words {number}", keys, now=0.0)
        live.put([NewItem(f"item-{number:06d}", (0.5,) * 20)], 0.0)
        live.add(RankingEntry("r", live.state.query, 1.0, 0, (live.ids[0],)), [0])
        queries.admit(live)
    assert len(queries.recent(2000)) < 150
    assert queries.size <= 10**6
    assert len(queries._packed) > 800  # so at most 600 bytes each
    assert not any(gc.is_tracked(table) for table in queries._packed._tables)
