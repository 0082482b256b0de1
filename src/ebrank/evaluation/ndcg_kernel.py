"""The compiled part of `ndcg`."""

from __future__ import annotations

import numpy as np

from ebrank.compiled import kernel
from ebrank.typing import Floats, Ints


@kernel
def query_ndcg(
    relevance: Floats,
    scores: Floats,
    keys: Floats,
    pointers: Ints,
    queries: Ints,
    discounts: Floats,
) -> Floats:
    """Return each query's NDCG, NaN where a score is NaN; empty `keys` stand for equal ones."""
    out = np.empty(len(queries))
    top = np.empty(len(discounts), np.int64)
    for i, query in enumerate(queries):
        start, stop = pointers[query], pointers[query + 1]
        if _has_nan(scores, start, stop):
            out[i] = np.nan
            continue
        gained = _dcg(relevance, scores, keys, start, stop, discounts, top)
        ideal = _dcg(relevance, relevance, keys, start, stop, discounts, top)
        out[i] = gained / ideal if ideal > 0.0 else 1.0
    return out


@kernel
def _has_nan(scores: Floats, start: int, stop: int) -> bool:
    found = False
    for row in range(start, stop):
        found |= np.isnan(scores[row])
    return found


@kernel
def _dcg(
    relevance: Floats,
    scores: Floats,
    keys: Floats,
    start: int,
    stop: int,
    discounts: Floats,
    top: Ints,
) -> float:
    """Return Σ_i relevance·discount over the list of highest scores; `top` is room to work in.

    Rows are inserted into a sorted list of the best so far. Most rows of a long query fail the
    first comparison, so this takes about one step per row.
    """
    cutoff = len(discounts)
    listed = 0
    for row in range(start, stop):
        if scores[row] == -np.inf:
            continue
        place = listed
        while place > 0 and _precedes(scores, keys, row, top[place - 1]):
            place -= 1
        if place == cutoff:
            continue
        listed = min(listed + 1, cutoff)
        for later in range(listed - 1, place, -1):
            top[later] = top[later - 1]
        top[place] = row
    total = 0.0
    for i in range(listed):
        total += relevance[top[i]] * discounts[i]
    return total


@kernel
def _precedes(scores: Floats, keys: Floats, row: int, earlier: int) -> bool:
    """Return whether a row is listed before one that comes earlier in the data."""
    if scores[row] != scores[earlier] or len(keys) == 0:
        return bool(scores[row] > scores[earlier])
    return bool(keys[row] < keys[earlier])
