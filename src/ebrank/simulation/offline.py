"""Cold- and Warm-NDCG: how good the learned model is, exploration left out (eq:NDCG)."""

from __future__ import annotations

import numpy as np

from ebrank.compiled import kernel, leaf
from ebrank.simulation.scored import insert, score_of
from ebrank.simulation.world import Compiled, Floats, Ints, World


@kernel
def offline_ndcg(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: tuple[float, float, float],
    cold: bool,
    queries: Ints,
    cutoffs: Ints,
    discounts: Floats,
    out: Floats,
) -> None:
    """Write the NDCG of each query (rows) at each cutoff (columns).

    Candidates are those that have entered; the ideal list has all of the query's items. Where
    `cold`, scores are those of items nobody has seen. `discounts` reaches to the largest cutoff.
    """
    length = len(discounts)
    rows = np.empty(length, np.int64)
    values = np.empty(length)
    for i, q in enumerate(queries):
        first = world.pointers[q]
        listed = 0
        for row in range(first, world.pointers[q + 1]):
            if world.positions[row] >= world.entered[q]:
                continue
            value = (
                cold_score(score, a, b, parameters, row)
                if cold
                else score_of(world, score, a, b, parameters, row, np.uint64(0))
            )
            listed = insert(world, rows, values, listed, row, value, length)
        gains(world.relevance, rows, listed, cutoffs, discounts, out[i])
        best = np.sort(world.relevance[first : world.pointers[q + 1]])[::-1]
        normalize(best, cutoffs, discounts, out[i])


@leaf
def cold_score(
    score: Compiled, a: Floats, b: Floats, parameters: tuple[float, float, float], row: int
) -> float:
    """Return the score of an item as if nobody had seen it."""
    p, q, r = parameters
    return score(a[row], b[min(row, len(b) - 1)], 0.0, 0.0, 0.0, 0.0, p, q, r, np.uint64(0))  # type: ignore[no-any-return]


@leaf
def gains(
    relevance: Floats, rows: Ints, listed: int, cutoffs: Ints, discounts: Floats, out: Floats
) -> None:
    """Write the DCG of a list at each cutoff."""
    for c in range(len(cutoffs)):
        out[c] = 0.0
        for rank in range(min(listed, cutoffs[c])):
            out[c] += relevance[rows[rank]] * discounts[rank]


@leaf
def normalize(best: Floats, cutoffs: Ints, discounts: Floats, out: Floats) -> None:
    """Divide DCG by that of the ideal list; a query where nothing is relevant scores 1."""
    for c in range(len(cutoffs)):
        ideal = 0.0
        for rank in range(min(len(best), cutoffs[c])):
            ideal += best[rank] * discounts[rank]
        out[c] = out[c] / ideal if ideal > 0.0 else 1.0
