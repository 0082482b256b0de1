"""The initial state of a trial: which items have entered; none has been shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebrank.equations import examination, label_gain
from ebrank.evidence import Behaviors, BehaviorStats, Valuation
from ebrank.evidence.kernels import write_units
from ebrank.evidence.slots import slot_of, slots_for
from ebrank.kernels import streams
from ebrank.kernels.compiled import kernel
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.sessions.session import World
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.play import grouped
from ebrank.lab.simulation.users import habits_of, relevance_of
from ebrank.typing import Floats, Ints, SmallInts

LINE = 16
"""Four-byte numbers in a cache line."""


def new_world(dataset: Dataset, config: SimulationConfig, key: np.uint64) -> World:
    """Return the state before anything is shown."""
    ranks = np.arange(1.0, config.list_length + 1)
    pointers = np.array(dataset.query_pointers)  # kernels are compiled for our own kind
    discounts = examination(ranks)
    scale = config.users, dataset.max_label, dataset.relevance
    habits, by_label = habits_of(*scale), relevance_of(*scale)
    relevance = by_label[dataset.labels]
    gain = label_gain(np.arange(dataset.max_label + 1.0)) if dataset.relevance is None else by_label
    length = np.array([len(ranks)])
    due = np.empty(0, np.int64)
    if dataset.items is None:
        arrivals, positions, entered = _arrivals(
            pointers, np.uint64(streams.child(key, streams.ARRIVALS)), *config.initial_candidates
        )
    else:
        times = item_times(dataset, key, config.session_count(dataset))
        arrivals, positions, entered, due = _item_arrivals(dataset, times)
    tie_keys = _tie_keys(pointers, np.uint64(streams.child(key, streams.TIES)))
    by_leaf, leaves = _in_order(dataset, tie_keys)
    assumed = config.assumed or config.users.examination
    n_slots = slots_for(config.list_length)
    return World(
        pointers=pointers,
        arrivals=arrivals,
        due=due,
        positions=positions,
        leaves=leaves,
        by_leaf=by_leaf,
        relevance=relevance,
        grades=np.array(dataset.labels),
        click=habits.click * config.click_rate,
        stop=habits.stop,
        ideal=ideal_dcg(pointers, relevance, discounts, length)[:, 0].copy(),
        gain=gain,
        ideal_gain=ideal_dcg(pointers, gain[dataset.labels], discounts, length)[:, 0].copy(),
        label_ndcg=np.zeros(dataset.n_queries),
        late_dcg=np.zeros(dataset.n_queries),
        entered=entered,
        sessions_done=np.zeros(dataset.n_queries, np.int64),
        **_item_state(dataset.n_rows, config.behaviors, n_slots),
        user_curve=config.users.examination(ranks),
        slots=np.array([slot_of(int(rank)) for rank in ranks]),
        table=np.array(Valuation.of(assumed, config.behaviors, slots=n_slots).table),
        discounts=discounts,
    )


def stats_of(world: World, behaviors: Behaviors) -> BehaviorStats:
    """Return the behavior statistics, sharing memory with the world."""
    return BehaviorStats(world.counts, behaviors)


def unseen(world: World) -> World:
    """Return the world as if nobody had seen any item, for scores alone."""
    return world._replace(
        counts=_nothing(world.counts),
        weighted_clicks=_nothing(world.weighted_clicks),
        exposure=_nothing(world.exposure),
    )


def _nothing(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return zeros of the same shape and type, which share one row in memory."""
    zeros = np.zeros((1, *numbers.shape[1:]), numbers.dtype)
    return np.lib.stride_tricks.as_strided(zeros, numbers.shape, (0, *zeros.strides[1:]))


def assume(world: World, valuation: Valuation) -> None:
    """Weight all counts, past and future, by another examination curve."""
    if not np.array_equal(world.table, valuation.table):
        world.table[:] = valuation.table
        write_units(world.counts, world.table, world.weighted_clicks, world.exposure)


def _item_state(n_rows: int, behaviors: Behaviors, slots: int) -> dict[str, npt.NDArray[Any]]:
    """Return fields of `World` for items nobody has seen: views of one block of memory per item.

    A block is a whole number of cache lines.
    """
    counters = behaviors.outcomes * slots
    width = -(-(4 + counters + 2) // LINE) * LINE
    room = np.zeros(n_rows * width + LINE, np.int32)
    begin = (-room.ctypes.data % (4 * LINE)) // 4
    items = room[begin : begin + n_rows * width].reshape(n_rows, width)
    items[:, 4 + counters : 6 + counters] = -1
    units = items[:, :4].view(np.int64)
    counts = np.lib.stride_tricks.as_strided(
        items[:, 4:], (n_rows, behaviors.outcomes, slots), (4 * width, 4 * slots, 4)
    )
    last = {"entered_at": items[:, 4 + counters], "first_shown": items[:, 5 + counters]}
    return last | {"weighted_clicks": units[:, 0], "exposure": units[:, 1], "counts": counts}


@kernel
def _arrivals(
    pointers: Ints, key: np.uint64, fewest: int, most: int
) -> tuple[SmallInts, SmallInts, Ints]:
    """Return each query's rows in order of entering, their places, and how many are initial."""
    order = np.arange(pointers[-1]).astype(np.int32)
    positions = np.empty(pointers[-1], np.int32)
    initial = np.empty(len(pointers) - 1, np.int64)
    for q in range(len(initial)):
        first, n = pointers[q], pointers[q + 1] - pointers[q]
        query = streams.child(key, q)
        start = fewest + streams.below(streams.child(query, 0), most - fewest + 1)
        initial[q] = min(start, n)
        for i in range(n - 1, 0, -1):  # Fisher and Yates
            j = streams.below(streams.child(query, i), i + 1)
            order[first + i], order[first + j] = order[first + j], order[first + i]
        for i in range(n):
            positions[order[first + i]] = i
    return order, positions, initial


FROM_THE_START = -1


def item_times(dataset: Dataset, key: np.uint64, sessions: int) -> Ints:
    """Return the session of a run from which each row's item is there, in all its queries.

    About half of the items are there from the start, the others arrive at a uniform time. A query
    must have a candidate to begin with: if it has none, the first to arrive is there from the
    start.
    """
    assert dataset.items is not None
    items = np.uint64(streams.child(key, streams.ITEMS))
    draws = streams.uniforms(items, 0, int(dataset.items.max()) + 1)
    # The upper half of a draw's range says when its item arrives.
    times = np.where(draws < 0.5, FROM_THE_START, ((2.0 * draws - 1.0) * sessions).astype(np.int64))
    for query in range(dataset.n_queries):
        candidates = dataset.items[dataset.rows_of(query)]
        times[candidates[times[candidates].argmin()]] = FROM_THE_START
    return times[dataset.items]


def _item_arrivals(dataset: Dataset, times: Ints) -> tuple[SmallInts, SmallInts, Ints, Ints]:
    """Return rows by time in each query, their places, how many are initial, and the times."""
    order, positions = _in_order(dataset, times)
    initial = np.bincount(dataset.query_of_rows, times == FROM_THE_START).astype(np.int64)
    return order, positions, initial, times[order]


def _in_order(dataset: Dataset, keys: Ints | Floats) -> tuple[SmallInts, SmallInts]:
    """Return each query's rows by their keys, and the place of each row in that order."""
    query_of_rows = dataset.query_of_rows
    by_key = np.argsort(keys, kind="stable")
    by_query = grouped(query_of_rows[by_key], dataset.n_queries).times
    order = by_key[by_query].astype(np.int32)
    places = np.empty(dataset.n_rows, np.int32)
    places[order] = np.arange(dataset.n_rows) - dataset.query_pointers[query_of_rows]
    return order, places


@kernel
def _tie_keys(pointers: Ints, key: np.uint64) -> Floats:
    """Return a random number for each item, which orders equal scores."""
    keys = np.empty(pointers[-1])
    for q in range(len(pointers) - 1):
        query = streams.child(key, q)
        for row in range(pointers[q], pointers[q + 1]):
            keys[row] = streams.uniform(streams.child(query, row - pointers[q]))
    return keys


@kernel
def ideal_dcg(pointers: Ints, relevance: Floats, discounts: Floats, cutoffs: Ints) -> Floats:
    """Return the best DCG of each query (rows) at each cutoff (columns), over all of its items."""
    ideal = np.zeros((len(pointers) - 1, len(cutoffs)))
    best = np.empty(len(discounts))
    for q in range(len(ideal)):
        best[:] = 0.0
        for row in range(pointers[q], pointers[q + 1]):
            gain = relevance[row]
            for rank in range(len(best)):  # sinks to its place and pushes the rest down
                if gain > best[rank]:
                    gain, best[rank] = best[rank], gain
        for c in range(len(cutoffs)):
            for rank in range(cutoffs[c]):
                ideal[q, c] += best[rank] * discounts[rank]
    return ideal
