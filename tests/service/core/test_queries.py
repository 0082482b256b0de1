"""Queries in memory follow the store, take little room, and plan by the rate of their lists."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.environment.config import SettingsError
from ebrank.service.core import models
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.core.queries import Pace, Queries, normalized
from ebrank.service.settings import Settings
from ebrank.service.store.counting import ACCEPTED, change_of
from ebrank.service.store.items import StoredItems
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem, News, QueryState, RankingEntry
from tests.service.scenes import Scene, items, played, settings
from tests.service.store.blocking import Blocking, run


async def filled_store(queries: str) -> MemoryStore:
    """Return a store of queries with two items each."""
    store = MemoryStore()
    for query in queries:
        await store.items.put(query, [NewItem("x", (1.0,)), NewItem("y", (2.0,))], 0.0)
    return store


async def test_the_longest_unused_query_is_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_query_of_one_item_takes_a_few_hundred_bytes() -> None:
    queries = Queries(MemoryStore(), seed=0, room=10**6)
    keys = [f"p{column}" for column in range(20)]
    for number in range(1000):
        live = queries.empty(f"a query of three words {number}", keys, now=0.0)
        live.put([NewItem(f"item-{number:06d}", (0.5,) * 20)], 0.0)
        listed = RankingEntry("r", live.state.query, 1.0, 0, (live.ids[0],))
        live.add(change_of(listed, ACCEPTED, [0], ()))
        queries.admit(live)
    assert len(queries.recent(2000)) < 150
    assert queries.size <= 10**6
    assert len(queries._packed) > 800  # so at most 600 bytes each
    assert not any(gc.is_tracked(table) for table in queries._packed._tables)


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
    loaded = LiveQuery.read(state, seed=7, since=0.0)
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
            live.add(change_of(entry, ACCEPTED, [row], ()))
            live.catch_up(1, News(0, [(row, 0, 0, count)], []))
            live.explored_first[row], live.found_after[row] = True, 1.5
            live.withdraw(0)
    live.state.version = 2**40
    again = LiveQuery.unpacked("q", live.packed(), seed=7, behaviors=live.behaviors)
    assert list(again.ids) == list(live.ids) == list(again.state.ids)
    assert (again.state.version, again.since, again.size) == (2**40, 3.0, live.size)
    for name in ("features", "entered", "first_shown", "active"):
        np.testing.assert_array_equal(getattr(again.state, name), getattr(live.state, name))
    for name in ("tie_keys", "found_after", "explored_first", "candidates"):
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
        listed = RankingEntry("r", "q", 5.0, 0, ("a", "b"))
        live.add(change_of(listed, ACCEPTED, [0, 1], ()))
    assert live.stats(np.arange(2)).counts[:, 0].tolist() == [[most + 2, 0], [0, 10]]
    assert live.counts.itemsize == 2 * bytes_each


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
    return Pace(queries, period).lists_ahead(with_lists(queries, "q", lists), after)


def test_as_many_lists_are_planned_for_as_there_were() -> None:
    assert planned(600, after=10.0) == pytest.approx(600, rel=0.02)
    assert planned(0, after=0.0) == planned(0, after=MONTH) == 10.0


def test_the_period_limits_the_past() -> None:
    assert planned(60_000, after=2 * MONTH) == pytest.approx(30_000, rel=1e-3)
    assert planned(60_000, after=2 * MONTH, period=MONTH / 10) == pytest.approx(3000, rel=1e-3)


def test_a_new_query_is_expected_to_be_like_the_others() -> None:
    assert planned(20, after=MONTH) == 20.0
    assert planned(20, after=MONTH, others=90_000) < 40.0  # as old, and rarely asked
    queries = Queries(MemoryStore(), seed=0)
    with_lists(queries, "other", 90_000)
    new = queries.empty("new", ("p0",), now=MONTH)
    new.put([NewItem("a", (0.0,))], MONTH)
    queries.admit(new)
    assert Pace(queries, MONTH).lists_ahead(new, MONTH) > 5000


@given(st.text())
def test_normalized_names_stay_as_they_are(name: str) -> None:
    assert normalized(normalized(name)) == normalized(name)


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("tea", "tea"),
        (" Green\tTEA\n", "green tea"),
        ("Ⅷ ½", "viii 1⁄2"),
        ("e\u0301tude", "étude"),
        ("STRASSE", "strasse"),
        ("straße", "strasse"),
        ("ｔｅａ　ｂａｇ", "tea bag"),
        ("\ud800", "\ud800"),  # half a character
    ],
)
def test_spellings_of_a_name(spelled: str, name: str) -> None:
    assert normalized(spelled) == name


@played()
async def test_spellings_are_one_query(engine: Scene) -> None:
    await engine.put_items("Green  Tea", items(2))
    await engine.put_items(" green tea", items(3))
    answer = await engine.ranked("GREEN TEA", items=["i0", "i2"])
    assert len(answer.items) == 2
    view = await engine.query("Green tea ")
    assert (view.query, len(view.items)) == ("green tea", 3)
    assert (await engine.withdraw("GREEN tea", "i1")).withdrawn
    assert (await engine.insights()).totals.queries == 1
    for nameless in (" ", "\u3000"):
        with pytest.raises(Problem, match="contains only spaces"):
            await engine.ranked(nameless)
    with pytest.raises(Problem, match="more than 512 characters"):
        await engine.query("ﷺ" * 100)


@played(settings(store={"normalize_queries": False}))
async def test_names_may_be_literal_if_a_store_began_so(engine: Scene) -> None:
    await engine.put_items("Tea ", items(1))
    with pytest.raises(NotFound):
        await engine.query("tea")
    with pytest.raises(SettingsError, match=r"are literal\. Set it to false, or use another"):
        await engine.opened(settings())
