"""Queries in memory follow the store, and keep the names of items in little memory."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.service.core import queries as queries_module
from ebrank.service.core.queries import (
    DROPPED_AT_ONCE,
    ENTRY_BYTES,
    LiveQuery,
    PackedCache,
    PackedStrings,
    Queries,
)
from ebrank.service.learning import models
from ebrank.service.settings import Settings
from ebrank.service.store.memory import MemoryItems, MemoryStore
from ebrank.service.store.records import NewItem, News, QueryState, RankingEntry
from tests.service.store.blocking import Blocking, run

BATCHES = st.lists(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1, width=32)), max_size=4),
    max_size=5,
)


@given(BATCHES, st.lists(st.sampled_from("abcdef"), max_size=3))
def test_memory_follows_the_store(batches: list[list[tuple[str, float]]], gone: list[str]) -> None:
    store = Blocking(MemoryStore())
    queries = Queries(store.wrapped, seed=7)
    live = queries.empty("q", ("p0",), now=0.0)
    for time, batch in enumerate(batches):
        new = [NewItem(name, (value,)) for name, value in batch]
        store.items.put("q", new, float(time))
        known = set(live.ids)
        assert live.put(new, float(time)) == len({item.id for item in new} - known)
    for name in gone:
        [row] = live.rows_of([name])
        withdrawn = store.items.withdraw("q", name, 9.0) is not None
        assert (row is not None and bool(live.state.active[row])) == withdrawn
        if row is not None:
            live.withdraw(row)
    state = store.items.load("q")
    if state is None:
        assert len(live) == 0
        return
    assert list(live.ids) == list(live.state.ids) == list(state.ids)
    for name in ("features", "entered", "first_shown", "active"):
        np.testing.assert_array_equal(getattr(live.state, name), getattr(state, name))
    loaded = LiveQuery(state, seed=7, since=0.0)
    np.testing.assert_array_equal(live.tie_keys, loaded.tie_keys)
    assert live.candidates.tolist() == np.flatnonzero(state.active).tolist()


def test_tie_keys_depend_on_seed_query_and_item_alone() -> None:
    store = Blocking(MemoryStore())
    for query in ("q", "r"):
        store.items.put(query, [NewItem("a", ()), NewItem("b", ())], 0.0)

    def keys(seed: int, query: str) -> list[int]:
        live = run(Queries(store.wrapped, seed=seed).get(query, 0.0))
        return [int(key) for key in live.tie_keys]

    assert keys(1, "q") == keys(1, "q")
    assert len({*keys(1, "q"), *keys(2, "q"), *keys(1, "r")}) == 6


def test_alpha_is_computed_once_for_a_model_and_a_set_of_candidates() -> None:
    store = Blocking(MemoryStore())
    store.items.put("q", [NewItem("a", (1.0,)), NewItem("b", (2.0,))], 0.0)
    live = run(Queries(store.wrapped, seed=0).get("q", 0.0))
    model = run(models.load(store.wrapped, 0, Settings()))
    first = live.prior(model)
    assert live.prior(model) is first
    live.withdraw(0)
    assert live.prior(model).a.shape == (1,)
    other = models.Model(1, model.ranker, fill_by_mean=False)
    assert live.prior(other) is not live.prior(model)


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
            return await MemoryItems.load(store.items, query)

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


@given(BATCHES, st.lists(st.tuples(st.integers(0, 3), st.integers(0, 70_000)), max_size=3))
def test_a_query_is_unpacked_as_it_was_packed(
    batches: list[list[tuple[str, float]]], shown: list[tuple[int, int]]
) -> None:
    live = Queries(MemoryStore(), seed=7).empty("q", ("p0",), now=3.0)
    for time, batch in enumerate(batches):
        live.put([NewItem(name, (value,)) for name, value in batch], float(time))
    for row, count in shown:
        if row < len(live):
            entry = RankingEntry("r", "q", 5.0, 0, (live.ids[row],))
            live.add(entry, [row])
            live.catch_up(1, News(0, [(row, 0, 0, count)], []))
            live.explored_first[row], live.earned[row] = True, 1.5
            live.withdraw(0)
    live.state.version = 2**40
    again = LiveQuery.unpacked("q", live.packed(), seed=7, behaviors=live.behaviors)
    assert list(again.ids) == list(live.ids) == list(again.state.ids)
    assert (again.state.version, again.since, again.size) == (2**40, 3.0, live.size)
    for name in ("features", "entered", "first_shown", "active"):
        np.testing.assert_array_equal(getattr(again.state, name), getattr(live.state, name))
    for name in ("tie_keys", "earned", "explored_first", "candidates"):
        np.testing.assert_array_equal(getattr(again, name), getattr(live, name))
    np.testing.assert_array_equal(again.counts, live.counts)
    assert again.counts.dtype == live.counts.dtype
    assert again.put([NewItem("z", (0.5,))], 9.0) == live.put([NewItem("z", (0.5,))], 9.0) == 1
    np.testing.assert_array_equal(again.tie_keys, live.tie_keys)


@pytest.mark.parametrize("most", [2**8 - 1, 2**16 - 1])
def test_counts_go_on_when_they_need_more_bytes(most: int) -> None:
    live = Queries(MemoryStore(), seed=7).empty("q", ("p0",), now=3.0)
    live.put([NewItem(name, (0.0,)) for name in "ab"], 1.0)
    live.catch_up(1, News(0, [(0, 0, 0, most - 1), (1, 0, 1, 7)], []))
    bytes_each = live.counts.itemsize
    for _ in range(3):
        live.add(RankingEntry("r", "q", 5.0, 0, ("a", "b")), [0, 1])
    assert live.stats(np.arange(2)).counts[:, 0].tolist() == [[most + 2, 0], [0, 10]]
    assert live.counts.itemsize == 2 * bytes_each


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


# --- packed values ---------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 300), st.booleans()), max_size=200),
    st.sampled_from([0, 500, 5000]),
)
def test_a_cache_keeps_to_its_room(steps: list[tuple[int, int, bool]], room: int) -> None:
    cache: PackedCache[str] = PackedCache(room)
    values: dict[str, bytes] = {}
    for number, length, keep in steps:
        key = str(number)
        if keep:
            values[key] = bytes(length)
            cache.put(key, values[key])
        else:
            assert cache.get(key) in (None, values.get(key))
        assert cache.size <= room
        assert cache.size == sum(
            ENTRY_BYTES + len(key) + len(value)
            for table in cache._tables
            for key, value in table.items()
        )
    for key in list(values):
        cache.pop(key)
    assert (cache.size, len(cache)) == (0, 0)


def test_no_table_is_large_and_there_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries_module, "MOST_TOGETHER", 80)
    cache: PackedCache[str] = PackedCache(10**9)
    rng = np.random.default_rng(1)
    for number in range(20_000):
        cache.put(f"{number % 1000}", b"")
        cache.pop(f"{rng.integers(1000)}")
        assert max(map(len, cache._tables)) <= 80
        assert len(cache._tables) <= 8 + 2 * 8 * 1000 / 80


def test_what_was_used_lately_outlives_what_was_not() -> None:
    cache: PackedCache[str] = PackedCache(100 * (ENTRY_BYTES + 12))
    cache.put("used", b"12345678")
    for number in range(1000):
        cache.put(f"{number:04d}", b"12345678")
        assert cache.get("used") is not None
    assert cache.get("0999") is not None
    assert cache.get("0800") is None
    assert len(cache) == 100


def test_much_is_dropped_a_little_at_a_time() -> None:
    names: PackedCache[str] = PackedCache(10**9)
    for number in range(3 * DROPPED_AT_ONCE):
        names.put(str(number), b"")
    names.room = 0
    names.trim()
    assert len(names) == 2 * DROPPED_AT_ONCE


TEXTS = st.lists(st.text(st.characters(), max_size=5), max_size=8)


@given(TEXTS, TEXTS)
def test_they_are_a_list_of_texts(first: list[str], more: list[str]) -> None:
    names = PackedStrings(first).extended(more)
    both = first + more
    assert list(names) == both
    assert len(names) == len(both)
    assert [names[at] for at in range(len(both))] == both
    assert [names[at] for at in range(-len(both), 0)] == both
    assert names[1:5:2] == both[1:5:2]
    assert all(names.index(name) == both.index(name) for name in both)


def test_there_is_nothing_beyond_the_end() -> None:
    with pytest.raises(IndexError):
        PackedStrings(["a"])[1]
    with pytest.raises(IndexError):
        PackedStrings()[0]


# --- how many lists are planned for ----------------------------------------------------------

DAY = 86_400.0
MONTH = 30 * DAY


def with_lists(queries: Queries, name: str, lists: int, items: int = 20) -> LiveQuery:
    """Return a query whose first item stood at the top of so many lists."""
    live = queries.empty(name, ("p0",), now=0.0)
    live.put([NewItem(f"i{at}", (0.0,)) for at in range(items)], 0.0)
    live.catch_up(1, News(0, [(0, 0, 0, lists)], [(0, 1.0)]))
    queries.admit(live)
    return live


def planned(lists: int, *, after: float, others: int = 0, period: float = MONTH) -> float:
    """Return what is planned for a query after some time, beside another query."""
    queries = Queries(MemoryStore(), seed=0)
    if others:
        with_lists(queries, "other", others)
    return queries.expected_lists(with_lists(queries, "q", lists), after, period)


def test_a_rate_goes_on_for_the_period_planned() -> None:
    assert planned(60_000, after=2 * MONTH) == pytest.approx(30_000, rel=1e-3)
    assert planned(60_000, after=2 * MONTH, period=MONTH / 10) == pytest.approx(3000, rel=1e-3)


def test_nobody_plans_further_ahead_than_the_past_reaches_back() -> None:
    assert planned(600, after=10.0) == pytest.approx(600, rel=0.02)


def test_a_new_query_is_expected_to_be_like_the_others() -> None:
    assert planned(0, after=0.0) == 100.0
    assert planned(0, after=MONTH) == 100.0
    alone, beside = planned(20, after=MONTH), planned(20, after=MONTH, others=90_000)
    assert alone == 100.0
    assert beside == 100.0  # it has been there as long, and is rarely asked
    queries = Queries(MemoryStore(), seed=0)
    with_lists(queries, "other", 90_000)
    new = queries.empty("new", ("p0",), now=MONTH)
    new.put([NewItem("a", (0.0,))], MONTH)
    queries.admit(new)
    assert queries.expected_lists(new, MONTH, MONTH) > 10_000


def test_plans_end_where_new_items_take_over() -> None:
    queries = Queries(MemoryStore(), seed=0)
    live = with_lists(queries, "q", 600, items=30)
    before = queries.expected_lists(live, 100.0, MONTH)
    assert live.arrivals == 0
    live.put([NewItem(f"new{at}", (0.0,)) for at in range(30)], 50.0)
    assert live.arrivals == 30
    # 60 candidates, and one arrival in 20 lists: all are new after 1200 lists
    expected = 1.0 / (1.0 / before + 2.0 / 1200.0)
    assert queries.expected_lists(live, 100.0, MONTH) == pytest.approx(expected)
