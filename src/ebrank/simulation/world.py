"""The state of a trial: who has entered, what was shown, what was clicked, as flat arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ebrank import streams
from ebrank.behavior import BehaviorStats
from ebrank.compiled import kernel
from ebrank.data.dataset import Dataset
from ebrank.equations import examination, relevance_probability
from ebrank.simulation.config import SimulationConfig
from ebrank.typing import Floats, Ints, SmallInts

Compiled: TypeAlias = Callable[..., Any]  # a function handed to a kernel as an argument

AGES = 16
"""Buckets of age: 0 for initial candidates, then 0, 1, 2-3, 4-7, ... sessions since entering."""


class World(NamedTuple):
    """Everything a session reads and writes. Rows are items; `arrivals` puts them in order.

    Query q owns the rows pointers[q] to pointers[q + 1]. `arrivals` holds these rows in the order
    in which they enter, so that the candidates are its first `entered[q]`; `positions` is the place
    of a row in that order. `entered_at` is the session of its query at which an item entered, −1
    for those that were there at the start; `first_shown` that of its first impression, −1 before.
    `leaves` numbers a query's rows in a random order, `by_leaf` holds them in that order: the lower
    leaf precedes among equal scores.
    """

    pointers: Ints
    arrivals: SmallInts
    positions: SmallInts
    leaves: SmallInts
    by_leaf: SmallInts
    relevance: Floats
    ideal: Floats
    entered: Ints
    entered_at: SmallInts
    sessions_done: Ints
    first_shown: SmallInts
    shown: Ints
    clicks: Ints
    weighted_clicks: Floats
    exposure: Floats
    user_curve: Floats
    believed_curve: Floats
    discounts: Floats


def new_world(dataset: Dataset, config: SimulationConfig, key: np.uint64) -> World:
    """Return the state before anything was shown."""
    ranks = np.arange(1.0, config.list_length + 1)
    relevance = relevance_probability(dataset.labels.astype(np.float64), dataset.max_label)
    pointers = np.array(dataset.query_pointers)  # kernels are compiled for our own kind
    discounts = examination(ranks)
    arrivals, positions, entered = _arrivals(
        pointers, np.uint64(streams.child(key, streams.ARRIVALS)), *config.initial_candidates
    )
    tie_keys = _tie_keys(pointers, np.uint64(streams.child(key, streams.TIES)))
    leaves, by_leaf = _leaves(pointers, tie_keys)
    moments = np.full((dataset.n_rows, 2), -1, np.int32)  # both in one line of the cache
    return World(
        pointers=pointers,
        arrivals=arrivals,
        positions=positions,
        leaves=leaves,
        by_leaf=by_leaf,
        relevance=relevance,
        ideal=ideal_dcg(pointers, relevance, discounts, np.array([len(ranks)]))[:, 0].copy(),
        entered=entered,
        entered_at=moments[:, 0],
        sessions_done=np.zeros(dataset.n_queries, np.int64),
        first_shown=moments[:, 1],
        shown=np.zeros(dataset.n_rows, np.int64),
        clicks=np.zeros(dataset.n_rows, np.int64),
        weighted_clicks=np.zeros(dataset.n_rows),
        exposure=np.zeros(dataset.n_rows),
        user_curve=config.users.examination(ranks),
        believed_curve=(config.believed or config.users.examination)(ranks),
        discounts=discounts,
    )


def stats_of(world: World) -> BehaviorStats:
    """Return the behavior statistics, sharing memory with the world."""
    return BehaviorStats(world.shown, world.clicks, world.weighted_clicks, world.exposure)


@kernel
def _arrivals(
    pointers: Ints, key: np.uint64, fewest: int, most: int
) -> tuple[SmallInts, SmallInts, Ints]:
    """Return each query's rows in the order of entering, their places in it, and how many start."""
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


@kernel
def _tie_keys(pointers: Ints, key: np.uint64) -> Floats:
    """Return a random number for each item, by which equal scores are ordered."""
    keys = np.empty(pointers[-1])
    for q in range(len(pointers) - 1):
        query = streams.child(key, q)
        for row in range(pointers[q], pointers[q + 1]):
            keys[row] = streams.uniform(streams.child(query, row - pointers[q]))
    return keys


@kernel
def _leaves(pointers: Ints, tie_keys: Floats) -> tuple[SmallInts, SmallInts]:
    """Return each row's place among its query's rows by tie key, and the rows in that order."""
    leaves = np.empty(pointers[-1], np.int32)
    by_leaf = np.arange(pointers[-1]).astype(np.int32)
    for q in range(len(pointers) - 1):
        first, stop = pointers[q], pointers[q + 1]
        sort_by_key(by_leaf[first:stop], tie_keys)
        for place in range(stop - first):
            leaves[by_leaf[first + place]] = place
    return leaves, by_leaf


@kernel
def sort_by_key(rows: SmallInts, keys: Floats) -> None:
    """Sort rows by their keys in place (Shell's sort: NumPy's takes seconds to compile)."""
    gap = 1
    while gap < len(rows) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(rows)):
            row, j = rows[i], i
            while j >= gap and keys[rows[j - gap]] > keys[row]:
                rows[j] = rows[j - gap]
                j -= gap
            rows[j] = row
        gap //= 3


@kernel
def ideal_dcg(pointers: Ints, relevance: Floats, discounts: Floats, cutoffs: Ints) -> Floats:
    """Return the best DCG of each query (rows) at each cutoff (columns), over all of its items."""
    ideal = np.zeros((len(pointers) - 1, len(cutoffs)))
    best = np.empty(len(discounts))
    for q in range(len(ideal)):
        best[:] = 0.0
        for row in range(pointers[q], pointers[q + 1]):
            gain = relevance[row]
            for rank in range(len(best)):  # sink to its place, pushing the rest down
                if gain > best[rank]:
                    gain, best[rank] = best[rank], gain
        for c in range(len(cutoffs)):
            for rank in range(cutoffs[c]):
                ideal[q, c] += best[rank] * discounts[rank]
    return ideal
