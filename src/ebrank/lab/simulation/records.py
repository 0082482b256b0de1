"""What a run records besides single lists: Cum-NDCG, waits, predictions, shares of clicks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank.evidence import Sums
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import ScoreModel
from ebrank.lab.sessions.session import Schedule, World
from ebrank.lab.simulation.play import grouped
from ebrank.typing import Bools, Floats, Ints

NEVER = -1


def cum_ndcg(served: Floats, discount: float, before: float = 0.0) -> float:
    """Return Σ_τ γ^(t−τ)·NDCG_τ after the lists `served` (eq:cumDCG), given the value before them.

    >>> cum_ndcg(np.array([1.0, 0.5, 1.0]), discount=0.5)
    1.5
    >>> cum_ndcg(np.array([1.0]), discount=0.5, before=cum_ndcg(np.array([1.0, 0.5]), 0.5))
    1.5
    """
    ages = np.arange(len(served) - 1, -1, -1)
    since = (served * discount**ages).sum()  # not a dot product: BLAS rounds by thread count
    return float(since + before * discount ** len(served))


class Waiting:
    """How long new relevant items wait to be shown, and to be ranked among the best.

    Only test queries' items with the dataset's highest grade are watched, and of these the ones
    that enter while a ranker serves. All times are ages: sessions of the item's query since the one
    in which it entered, which counts 0. An item that has not been shown, or not reached the top,
    when the run ends has waited at least until then; `ebrank.statistics.survival` uses both.

    The best items are checked only at model updates, without exploration. So `wait_top` says when a
    ranker's own estimate was first seen to favor an item, not when it began to: even BM25 and
    Oracle, whose scores never change, seem to wait for the next update. Checking the served lists
    instead would add little, since every item in them is shown.
    """

    def __init__(self, dataset: Dataset, world: World) -> None:
        initial = world.positions < np.repeat(world.entered, dataset.candidates)
        on_test = np.repeat(dataset.query_splits == 2, dataset.candidates)
        awaited = on_test & (dataset.labels == dataset.max_label) & ~initial
        self._rows: Ints = np.flatnonzero(awaited)
        self._query_of = dataset.query_of_rows
        self._awaited: Bools = awaited
        self._top_at: Ints = np.full(dataset.n_rows, NEVER)

    def note_top(self, world: World, lists: Ints) -> None:
        """Record the items in the lists that the model, just updated, would show.

        `lists` holds rows of the dataset, −1 where there is none.
        """
        arrived = lists[(lists >= 0) & self._awaited[lists]]
        self._top_at[arrived] = world.sessions_done[self._query_of[arrived]] - 1
        self._awaited[arrived] = False

    def waits(self, world: World) -> dict[str, Ints]:
        """Return how long the items that have entered have waited, as fields of `TrialResult`."""
        rows = self._rows[world.entered_at[self._rows] >= 0]
        entered = world.entered_at[rows].astype(np.int64)
        last_session = world.sessions_done[self._query_of[rows]] - 1
        return {
            "wait_shown": _ages(world.first_shown[rows], entered),
            "wait_top": _ages(self._top_at[rows], entered),
            "watched": last_session - entered,
        }


def _ages(sessions: npt.NDArray[np.integer], entered: Ints) -> Ints:
    """Return sessions as ages of items; −1 for what never happened stays."""
    return np.where(sessions == NEVER, NEVER, sessions - entered)


class Predictions:
    """What a prior predicted for test queries' items that nobody had seen when it was recorded."""

    def __init__(self, dataset: Dataset, sums: Sums, model: ScoreModel) -> None:
        on_test = np.arange(dataset.n_rows)[dataset.rows_in("test")]
        self._rows: Ints = on_test[sums.shown[on_test] == 0]
        self._prior = None if model.prior is None else model.prior.rows(self._rows)

    def outcome(self, sums: Sums, relevance: Floats) -> Floats | None:
        """Return α, β, c, E and R of those shown since, shape (items, 5); None without a prior."""
        if self._prior is None:
            return None
        seen = sums.shown[self._rows] > 0
        rows = self._rows[seen]
        alpha, beta = np.broadcast_arrays(*self._prior)
        return np.column_stack(
            (alpha[seen], beta[seen], sums.clicks[rows], sums.exposure[rows], relevance[rows])
        )


# --- shares of all achievable clicks -------------------------------------------------------------

RARE, HEAD = 30, 150
"""A rare query has fewer lists in the run, a head query more."""
FIRST = 20
"""How many lists of each query count as its first."""


def shares(world: World, asked: Ints, ndcg: Floats) -> Floats:
    """Return which part of all achievable clicks lists got, where queries share items of a catalog.

    The value of a list is the sum of relevance × examination, 1/log2(rank + 1), over its ranks:
    where users look that far, the clicks it may expect. What was possible is the value of the best
    list of the items that had arrived when it was served. A share is the sum of values over the sum
    of what was possible. `late` compares what items that arrived during the run add to both sums: a
    ranker that buries what is new has a small share there, one that favors it may exceed 1.

    Shares are in the order of `result.SHARES`, NaN where nothing was possible. `asked` is the query
    of each session, `ndcg` the NDCG of its list.
    """
    n_queries = len(world.entered)
    values = ndcg * world.ideal[asked]
    plan = grouped(asked, n_queries)
    lists = np.diff(plan.starts)
    possible, late_possible = _possible(world, plan)
    place = np.empty(len(asked), np.int64)
    place[plan.times] = np.arange(len(asked)) - np.repeat(plan.starts[:-1], lists)
    among = (
        np.ones(len(asked), np.bool_),
        lists[asked] < RARE,
        lists[asked] > HEAD,
        place < FIRST,
    )
    got = [*(values[chosen].sum() for chosen in among), world.late_dcg.sum()]
    best = [*(possible[chosen].sum() for chosen in among), late_possible.sum()]
    return np.array([_over(own, whole) for own, whole in zip(got, best, strict=True)])


def _over(value: float, possible: float) -> float:
    return float(value / possible) if possible > 0.0 else float("nan")


def _possible(world: World, plan: Schedule) -> tuple[Floats, Floats]:
    """Return the value of each session's best list, and what items that arrived add to it.

    A query's best list changes only when an item arrives.
    """
    best, late = np.zeros((2, len(plan.times)))
    for q in range(len(world.entered)):
        rows = slice(int(world.pointers[q]), int(world.pointers[q + 1]))
        sessions = plan.times[plan.starts[q] : plan.starts[q + 1]]
        items, due = world.arrivals[rows], world.due[rows]
        relevance, leaves = world.relevance[items], world.leaves[items]
        there = np.searchsorted(due, sessions, side="right")
        for n in np.unique(there).tolist():
            chosen = np.lexsort((leaves[:n], -relevance[:n]))[: len(world.discounts)]
            worth = relevance[chosen] * world.discounts[: len(chosen)]
            own = sessions[there == n]
            best[own], late[own] = worth.sum(), worth[due[chosen] >= 0].sum()
    return best, late
