"""A query in memory follows the store."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.service.core import models
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.queries import Queries
from ebrank.service.settings import Settings
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem, News, RankingEntry
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
