"""Queries in memory follow the store, and keep the names of items in little memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.service.core.queries import LiveQuery, PackedStrings, Queries
from ebrank.service.learning import models
from ebrank.service.settings import Settings
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem
from tests.service.store.blocking import Blocking, run

BATCHES = st.lists(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1, width=32)), max_size=4),
    max_size=5,
)


@given(BATCHES, st.lists(st.sampled_from("abcdef"), max_size=3))
def test_memory_follows_the_store(batches: list[list[tuple[str, float]]], gone: list[str]) -> None:
    store = Blocking(MemoryStore())
    queries = Queries(store.wrapped, seed=7, most_items=100)
    live = queries.empty("q", 1, now=0.0)
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
        live = run(Queries(store.wrapped, seed=seed, most_items=9).get(query, 0.0))
        return [int(key) for key in live.tie_keys]

    assert keys(1, "q") == keys(1, "q")
    assert len({*keys(1, "q"), *keys(2, "q"), *keys(1, "r")}) == 6


def test_alpha_is_computed_once_for_a_model_and_a_set_of_candidates() -> None:
    store = Blocking(MemoryStore())
    store.items.put("q", [NewItem("a", (1.0,)), NewItem("b", (2.0,))], 0.0)
    live = run(Queries(store.wrapped, seed=0, most_items=9).get("q", 0.0))
    model = run(models.load(store.wrapped, 0, Settings()))
    first = live.prior(model)
    assert live.prior(model) is first
    live.withdraw(0)
    assert live.prior(model).a.shape == (1,)
    other = models.Model(1, model.ranker, fill_by_mean=False)
    assert live.prior(other) is not live.prior(model)


def test_the_longest_unused_query_is_dropped_first() -> None:
    async def session() -> None:
        store = MemoryStore()
        for query in "abc":
            await store.items.put(query, [NewItem("x", ()), NewItem("y", ())], 0.0)
        queries = Queries(store, seed=0, most_items=4)
        a = await queries.get("a", 0.0)
        await queries.get("b", 0.0)
        assert await queries.get("a", 0.0) is a
        await queries.get("c", 0.0)  # six items are too many: b goes
        assert [live.state.query for live in queries.recent(9)] == ["c", "a"]
        assert await queries.get("a", 0.0) is a
        assert await queries.get("nothing", 0.0) is None

    run(session())


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
    live = queries.empty(name, 1, now=0.0)
    live.put([NewItem(f"i{at}", (0.0,)) for at in range(items)], 0.0)
    live.stats.counts[0, 0, 0] = lists
    live.state.first_shown[0] = 1.0
    queries.admit(live)
    return live


def planned(lists: int, *, after: float, others: int = 0, period: float = MONTH) -> float:
    """Return what is planned for a query after some time, beside another query."""
    queries = Queries(MemoryStore(), seed=0, most_items=1000)
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
    queries = Queries(MemoryStore(), seed=0, most_items=1000)
    with_lists(queries, "other", 90_000)
    new = queries.empty("new", 1, now=MONTH)
    new.put([NewItem("a", (0.0,))], MONTH)
    queries.admit(new)
    assert queries.expected_lists(new, MONTH, MONTH) > 10_000


def test_plans_end_where_new_items_take_over() -> None:
    queries = Queries(MemoryStore(), seed=0, most_items=1000)
    live = with_lists(queries, "q", 600, items=30)
    before = queries.expected_lists(live, 100.0, MONTH)
    assert live.arrivals == 0
    live.put([NewItem(f"new{at}", (0.0,)) for at in range(30)], 50.0)
    assert live.arrivals == 30
    # 60 candidates, and one arrival in 20 lists: all are new after 1200 lists
    expected = 1.0 / (1.0 / before + 2.0 / 1200.0)
    assert queries.expected_lists(live, 100.0, MONTH) == pytest.approx(expected)
