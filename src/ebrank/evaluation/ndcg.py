"""NDCG: how close a ranking comes to the best one, per query.

DCG = Σ_i R(i)/log2(i + 1) over the first `cutoff` items of a list, where R(i) is the relevance of
the item at rank i, used as it is: give `equations.relevance_probability` of the labels. NDCG
divides by the DCG of the ideal list, which sorts all of the query's items by R.

Two queries, the second ranked the wrong way round:

>>> import numpy as np
>>> relevance = np.array([0.1, 1.0, 0.4, 1.0, 0.1])
>>> scores = np.array([1.0, 3.0, 2.0, 0.0, 5.0])
>>> ndcg(relevance, scores, np.array([0, 3, 5])).round(3)
array([1.   , 0.688])
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank.equations import examination
from ebrank.errors import ParameterError
from ebrank.typing import Floats, Ints


def ndcg(
    relevance: npt.ArrayLike,
    scores: npt.ArrayLike,
    query_pointers: npt.ArrayLike,
    *,
    cutoff: int = 5,
    queries: npt.ArrayLike | None = None,
    tie_keys: npt.ArrayLike | None = None,
) -> Floats:
    """Return the NDCG@cutoff of each query.

    Args:
        relevance: gain of each row, finite and ≥ 0, shape (rows,).
        scores: what each query's rows are sorted by, highest first, shape (rows,). A row with −∞
            stays out of the list (an item that has not entered yet) but not out of the ideal list.
        query_pointers: first row of each query and the end, shape (queries + 1,).
        cutoff: length of the list; a larger one than the query has items takes them all.
        queries: indices of the queries to evaluate, in the order of the result; all if None.
        tie_keys: among equal scores the row with the lowest key comes first, shape (rows,). Equal
            keys, and no keys at all, leave rows in their order; where that order may tell the
            relevance, give seeded random keys.

    A query whose items all have the same relevance scores 1 in any order, and so does, by the same
    reasoning, one where it is 0 throughout (its ideal DCG is 0). Scores may not be NaN.
    """
    from ebrank.evaluation.ndcg_kernel import query_ndcg  # Numba takes a while to import

    pointers = _pointers(query_pointers)
    rows = int(pointers[-1])
    gains = _row_values(relevance, "relevance", rows)
    values = _row_values(scores, "scores", rows)
    keys = np.zeros(0) if tie_keys is None else _row_values(tie_keys, "tie_keys", rows)
    chosen = _chosen(queries, len(pointers) - 1)
    if cutoff < 1:
        raise ParameterError(f"cutoff must be 1 or more, not {cutoff}")
    if not (np.isfinite(gains) & (gains >= 0.0)).all():
        raise ParameterError("relevance must be finite and not negative")
    if np.isnan(keys).any():
        raise ParameterError("tie_keys must not be NaN")
    result = query_ndcg(gains, values, keys, pointers, chosen, _discounts(cutoff, pointers))
    undefined = chosen[np.isnan(result)]
    if len(undefined):
        row = pointers[undefined[0]] + int(np.isnan(values[pointers[undefined[0]] :]).argmax())
        raise ParameterError(f"scores must not be NaN: row {row} of query {undefined[0]} is")
    return result


def _discounts(cutoff: int, pointers: Ints) -> Floats:
    """Return 1/log2(i + 1) for the ranks i that a list can have."""
    longest = int(np.diff(pointers).max(initial=0))
    return examination(np.arange(1.0, min(cutoff, longest) + 1.0))


def _pointers(query_pointers: npt.ArrayLike) -> Ints:
    pointers = np.ascontiguousarray(query_pointers, np.int64)
    if (
        pointers.ndim != 1
        or len(pointers) == 0
        or pointers[0] != 0
        or (np.diff(pointers) < 0).any()
    ):
        raise ParameterError("query_pointers must start with 0 and not decrease")
    return pointers


def _row_values(values: npt.ArrayLike, name: str, rows: int) -> Floats:
    array = np.ascontiguousarray(values, np.float64)
    if array.shape != (rows,):
        raise ParameterError(
            f"{name} must have one value for each of the {rows} rows, not the shape {array.shape}"
        )
    return array


def _chosen(queries: npt.ArrayLike | None, n_queries: int) -> Ints:
    if queries is None:
        return np.arange(n_queries)
    chosen = np.ascontiguousarray(queries, np.int64)
    if chosen.ndim != 1 or ((chosen < 0) | (chosen >= n_queries)).any():
        raise ParameterError(f"queries must be a list of indices from 0 to {n_queries - 1}")
    return chosen
