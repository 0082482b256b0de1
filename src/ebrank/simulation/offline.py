"""What the learned model would show without exploration: the lists of Cold- and Warm-NDCG."""

from __future__ import annotations

import numpy as np

from ebrank.kernels.compiled import kernel
from ebrank.sessions.scored import Scorer, check, room_for_batch, write_top
from ebrank.sessions.world import World
from ebrank.typing import Floats, Ints

NOBODY = -1
"""Fills a list that is longer than its query has candidates."""


@kernel
def write_best(
    world: World,
    scorer: Scorer,
    queries: Ints,
    lists: Ints,
) -> None:
    """Write each query's best candidates, those that have entered, into its row of `lists`."""
    length = lists.shape[1]
    values, doubt, batch = np.empty(length), 0.0, room_for_batch()
    for i, q in enumerate(queries):
        key = np.uint64(0)
        doubt += write_top(world, scorer, q, key, batch, values, lists[i])
        lists[i, min(length, world.entered[q]) :] = NOBODY
    check(doubt)


def list_ndcg(
    lists: Ints, relevance: Floats, discounts: Floats, cutoffs: Ints, ideal: Floats
) -> Floats:
    """Return the NDCG of each list (rows) at each cutoff (columns), eq:NDCG.

    `discounts` covers the whole length of the lists. `ideal` is the best DCG of each query at each
    cutoff over all its items, entered or not. If nothing is relevant, any list scores 1.
    """
    gains = np.where(lists == NOBODY, 0.0, relevance[lists])
    dcg = np.cumsum(gains * discounts, axis=1)[:, cutoffs - 1]
    return np.divide(dcg, ideal, out=np.ones_like(ideal), where=ideal > 0.0)
