"""Cold- and Warm-NDCG: how good the learned model is, exploration left out (eq:NDCG)."""

from __future__ import annotations

import numpy as np

from ebrank.compiled import kernel
from ebrank.simulation.scored import insert
from ebrank.simulation.world import Compiled, Floats, Ints, World


@kernel
def offline_ndcg(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: tuple[float, float, float],
    seen: float,
    queries: Ints,
    cutoffs: Ints,
    discounts: Floats,
    ideal: Floats,
    out: Floats,
) -> None:
    """Write the NDCG of each query (rows) at each cutoff (columns).

    Candidates are those that have entered; the ideal list has all of the query's items. `seen` is 1
    for the behavior so far, 0 to score items as if nobody had seen them. `discounts` reaches to the
    largest cutoff. A query where nothing is relevant scores 1.
    """
    length = len(discounts)
    rows = np.empty(length, np.int64)
    values = np.empty(length)
    for i, q in enumerate(queries):
        listed = 0
        for row in range(world.pointers[q], world.pointers[q + 1]):
            if world.positions[row] < world.entered[q]:
                value = score(
                    a[row],
                    b[min(row, len(b) - 1)],
                    seen * world.shown[row],
                    seen * world.clicks[row],
                    seen * world.weighted_clicks[row],
                    seen * world.exposure[row],
                    parameters[0],
                    parameters[1],
                    parameters[2],
                    np.uint64(0),
                )
                listed = insert(world.leaves, rows, values, listed, row, value, length)
        for c in range(len(cutoffs)):
            dcg = 0.0
            for rank in range(min(listed, cutoffs[c])):
                dcg += world.relevance[rows[rank]] * discounts[rank]
            out[i, c] = dcg / ideal[q, c] if ideal[q, c] > 0.0 else 1.0
