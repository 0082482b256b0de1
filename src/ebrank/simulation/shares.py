"""Which part of the possible clicks lists got, where queries share the items of a catalog.

The value of a list is the sum of relevance × examination, 1/log2(rank + 1), over its ranks: where
users look that far, the clicks it may expect. What was possible is the value of the best list of
the items that had arrived when it was served. A share is the sum of values over the sum of what was
possible. `late` compares what items that arrived during the run add to both sums: a ranker that
buries what is new has a small share there, one that favors it may exceed 1.
"""

from __future__ import annotations

import numpy as np

from ebrank.sessions.schedule import grouped
from ebrank.sessions.world import Schedule, World
from ebrank.typing import Floats, Ints

RARE, HEAD = 30, 150
"""A rare query has fewer lists in the run, a head query more."""
FIRST = 20
"""How many lists of each query count as its first."""


def shares(world: World, asked: Ints, ndcg: Floats) -> Floats:
    """Return the shares of a finished run, in the order of `result.SHARES`; NaN for none possible.

    `asked` is the query of each session, `ndcg` the NDCG of its list.
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
