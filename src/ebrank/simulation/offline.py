"""What the learned model would show without exploration: the lists of Cold- and Warm-NDCG."""

from __future__ import annotations

import numpy as np

from ebrank.compiled import kernel
from ebrank.pointers import pointer_to
from ebrank.simulation.scored import check, doubt_of, insert
from ebrank.simulation.world import World
from ebrank.typing import Compiled, Floats, Ints

NOBODY = -1
"""Fills a list that is longer than its query has candidates."""


@kernel
def write_best(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: Floats,
    seen: bool,
    queries: Ints,
    lists: Ints,
) -> None:
    """Write each query's best candidates, best first, into its row of `lists`.

    Candidates are the items that have entered. Unless `seen`, items are scored as if nobody had
    seen them.
    """
    length = lists.shape[1]
    values, doubt = np.empty(length), 0.0
    behaviors, slots = world.counts.shape[1] - 1, world.counts.shape[2]
    nothing = np.zeros((1, (1 + behaviors) * slots), np.int32)
    for i, q in enumerate(queries):
        listed = 0
        for row in range(world.pointers[q], world.pointers[q + 1]):
            if world.positions[row] < world.entered[q]:
                value = score(
                    a[row],
                    b[min(row, len(b) - 1)],
                    seen * world.weighted_clicks[row],
                    seen * world.exposure[row],
                    pointer_to(world.counts, row) if seen else pointer_to(nothing, 0),
                    slots,
                    behaviors,
                    pointer_to(world.table, 0),
                    pointer_to(parameters, 0),
                    np.uint64(0),
                )
                doubt += doubt_of(value)
                listed = insert(world.leaves, lists[i], values, listed, row, value, length)
        lists[i, listed:] = NOBODY
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
