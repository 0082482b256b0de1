"""What every store must do. A new store is one more line in `conftest.KINDS`."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebrank.service.store.base import Store, StoreError
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import (
    EventEntry,
    Minute,
    NewItem,
    Operation,
    RankingEntry,
    RolledUp,
)
from tests.service.store.samples import (
    bits,
    contents,
    event,
    fill,
    new_items,
    ranking,
    sums,
    write,
)

# --- items -------------------------------------------------------------------------------------


def test_an_empty_store_knows_nothing(store: Store) -> None:
    assert store.queries() == []
    assert store.load("q") is None
    assert store.snapshot("q") is None
    assert store.ranking("r") is None
    assert list(store.log()) == []
    assert store.log_length() == 0
    assert store.last_time() == 0.0
    assert (store.models(), store.model(1), store.active_model()) == ([], None, 0)
    assert (store.meta("features"), store.settings(), store.minutes(0.0)) == (None, {}, [])
    assert store.write([], flush=True) == []
    store.flush()


def test_items_stand_in_the_order_in_which_they_entered(store: Store) -> None:
    store.put_items("q", [NewItem("b", (1.0, float("nan"))), NewItem("a", (3.0, 0.1))], 5.0)
    store.put_items("q", new_items("c", "a"), 6.0, flush=False)
    state = store.load("q")
    assert state is not None
    assert (state.query, state.ids) == ("q", ["b", "a", "c"])
    expected = np.array([[1.0, np.nan], [97.0, 97.0], [99.0, 99.0]], np.float32)
    assert state.features.dtype == np.float32
    assert np.array_equal(state.features, expected, equal_nan=True)
    assert state.entered.tolist() == [5.0, 5.0, 6.0]
    assert np.isnan(state.first_shown).all()
    assert state.active.tolist() == [True] * 3
    assert sums(state) == dict.fromkeys("bac", (0, 0, 0.0, 0.0, None))
    assert store.last_time() == 6.0


def test_queries_stand_in_the_order_in_which_they_were_given(store: Store) -> None:
    for query in ("z", "a", "m", "a"):
        store.put_items(query, new_items("x"), 1.0)
    store.put_items("none", [], 1.0)
    assert store.queries() == ["z", "a", "m"]
    assert store.load("none") is None


def test_a_withdrawn_item_keeps_its_history_and_may_come_back(store: Store) -> None:
    fill(store)
    before = sums(store.load("q"))
    assert store.withdraw("q", "a", 80.0)
    assert not store.withdraw("q", "a", 81.0)
    assert not store.withdraw("q", "nobody", 81.0)
    assert not store.withdraw("nothing", "a", 81.0)
    state = store.load("q")
    assert state is not None
    assert state.active.tolist() == [False, True, True, False]
    assert store.last_time() == 80.0
    store.put_items("q", new_items("a"), 90.0)
    state = store.load("q")
    assert state is not None
    assert state.active.tolist() == [True, True, True, False]
    assert state.entered[0] == 1.0
    assert sums(state) == before


def test_items_of_different_widths_are_refused_as_a_whole(store: Store) -> None:
    with pytest.raises(StoreError, match="'b' of query 'q' has 3 features, others have 2"):
        store.put_items("q", [*new_items("a"), *new_items("b", width=3)], 1.0)
    assert store.queries() == []
    store.put_items("q", new_items("a"), 1.0)
    with pytest.raises(StoreError, match="nothing was changed"):
        store.put_items("q", new_items("c", width=1), 2.0)
    assert list(sums(store.load("q"))) == ["a"]


def test_the_caller_owns_what_is_loaded(store: Store) -> None:
    fill(store)
    state, before = store.load("q"), bits(store.load("q"))
    assert state is not None
    state.stats.shown[:] = 7
    state.features[:] = 0.0
    state.active[:] = False
    assert bits(store.load("q")) == before


# --- counting ----------------------------------------------------------------------------------


def test_a_served_list_counts_where_users_look(store: Store) -> None:
    store.put_items("q", new_items(*"abcd"), 1.0)
    assert [one.status for one in write(store, [ranking("r", "cabd", time=9.0)])] == ["accepted"]
    p = ranking("r", "cabd").examination
    assert sums(store.load("q")) == {
        "c": (1, 0, 0.0, p[0], 9.0),
        "a": (1, 0, 0.0, p[1], 9.0),
        "b": (1, 0, 0.0, p[2], 9.0),
        "d": (0, 0, 0.0, 0.0, None),
    }


@pytest.mark.parametrize(
    "bad",
    [
        ranking("r2", "ax"),
        ranking("r2", "a", query="nothing"),
        ranking("r1", "a"),
        event("e2", ranking("r1", "ax"), "x"),
    ],
    ids=["unknown item", "unknown query", "id taken", "unknown item of an event"],
)
def test_what_cannot_be_stored_leaves_nothing(store: Store, bad: Operation) -> None:
    store.put_items("q", new_items(*"ab"), 1.0)
    first = ranking("r1", "ab")
    write(store, [first])
    before = contents(store)
    with pytest.raises(StoreError):
        write(store, [ranking("r9", "ba"), event("e9", first, "a"), bad])
    assert contents(store) == before
    assert [one.status for one in write(store, [event("e9", first, "a")])] == ["accepted"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.text(), min_size=5, max_size=5, unique=True))
def test_any_text_is_a_name(store: Store, names: list[str]) -> None:
    query, item, ranking_id, event_id, kind = (name + "☂" for name in names)
    new = event_id not in {one.event_id for one in store.log() if isinstance(one, EventEntry)}
    if not new or store.ranking(ranking_id) or query in store.queries():
        return
    store.put_items(query, [NewItem(item, (1.0,)), NewItem("", (2.0,))], 1.0)
    served = RankingEntry(ranking_id, query, 2.0, 0, (item, ""), (1.0, 0.5), would_rank=("", item))
    click = EventEntry(event_id, ranking_id, query, item, kind, 1, 1.0, False, 3.0, 3.0)
    write(store, [served, click])
    assert list(store.log())[-2:] == [served, click]
    assert store.ranking(ranking_id) == served
    assert [n[0] for n in sums(store.load(query)).values()] == [1, 1]


# --- log and roll-up ---------------------------------------------------------------------------


def test_the_log_gives_back_what_was_written(store: Store) -> None:
    log = fill(store)
    assert list(store.log()) == log
    assert store.log_length() >= len(log)
    assert store.ranking("r2") == log[2]
    assert store.last_time() == 71.0


@pytest.mark.parametrize("before", [5.0, 10.5, 20.0, 20.5, 40.5, 55.0, 1000.0])
def test_a_roll_up_moves_the_head_of_the_log(store: Store, before: float) -> None:
    log = fill(store)
    store.add_minutes([Minute(0.0, {"clicks": 1.0}), Minute(60.0, {"clicks": 2.0})])
    whole = contents(store)
    old = [
        one for one in log if (one.received if isinstance(one, EventEntry) else one.time) < before
    ]
    events = sum(isinstance(entry, EventEntry) for entry in old)
    assert store.roll_up(before) == RolledUp(len(old) - events, events)
    assert store.roll_up(before) == RolledUp(0, 0)
    after = contents(store)
    assert after["log"] == log[len(old) :]
    assert after["current"] == whole["current"]
    assert after["last"] == whole["last"]
    assert [start for start, _ in after["minutes"]] == [s for s in (0.0, 60.0) if s >= before]
    only_old = MemoryStore()
    only_old.put_items("q", new_items(*"abcd"), 1.0)
    only_old.put_items("other query ☂", [NewItem("ä", (1.0, float("nan")))], 2.0)
    write(only_old, old)
    for query in store.queries():
        assert sums(store.snapshot(query)) == sums(only_old.load(query))
    assert (store.ranking("r1") is None) == (before > 10.0)


def test_a_roll_up_stops_at_the_first_younger_entry(store: Store) -> None:
    store.put_items("q", new_items("a"), 1.0)
    write(
        store,
        [ranking("r1", "a", time=5.0), ranking("r2", "a", time=9.0), ranking("r3", "a", time=5.0)],
    )
    assert store.roll_up(9.0) == RolledUp(1, 0)
    assert [entry.id for entry in store.log() if not isinstance(entry, EventEntry)] == ["r2", "r3"]


def test_the_log_goes_on_after_all_was_rolled_up(store: Store) -> None:
    log = fill(store)
    store.roll_up(1000.0)
    again = ranking("r7", "ab", time=100.0)
    first = log[0]
    assert not isinstance(first, EventEntry)
    orphan = event("e1", first, "b", "bookmark", time=101.0)  # its ranking left the log
    assert [one.status for one in write(store, [again, orphan])] == ["accepted"] * 2
    assert list(store.log()) == [again, orphan]


def test_a_history_is_restored(store: Store) -> None:
    origin = MemoryStore()
    fill(origin)
    origin.roll_up(30.5)
    for query in origin.queries():
        state = origin.snapshot(query)
        assert state is not None
        store.restore(state, origin.last_time())
        with pytest.raises(StoreError, match="there already"):
            store.restore(state, 1.0)
    write(store, list(origin.log()))
    assert contents(store) == contents(origin)


def test_writers_and_roll_ups_in_several_threads(store: Store) -> None:
    store.put_items("q", new_items(*"abc"), 1.0)

    def work(worker: int) -> None:
        for number in range(20):
            one = ranking(f"r{worker}-{number}", "abc", time=10.0)
            write(store, [one, event(f"e{worker}-{number}", one, "b", time=10.0)])
            if number % 10 == 5:
                store.roll_up(11.0)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [n[:2] for n in sums(store.load("q")).values()] == [(80, 0), (80, 80), (80, 0)]
    store.roll_up(11.0)
    assert sums(store.snapshot("q")) == sums(store.load("q"))
