"""Per-query min–max scaling: how far an item's feature lies between its query's extremes.

    scaled = (x − lo) / (hi − lo),   lo and hi over the candidates of one query

and 0 if all candidates agree. It is computed in double precision, where the difference of two
finite float32 numbers neither overflows nor vanishes, so the result is never NaN and its extremes
are exactly 0 and 1.

>>> features = np.array([[1, 7], [3, 7], [2, 7], [9, 1], [5, 2]], dtype=np.float32)
>>> query_min_max(features, [0, 3, 5])
array([[0. , 0. ],
       [1. , 0. ],
       [0.5, 0. ],
       [1. , 0. ],
       [0. , 1. ]], dtype=float32)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank.errors import DataError
from ebrank.kernels.compiled import exact
from ebrank.kernels.threads import map_blocks
from ebrank.typing import Features, Ints

# Queries passed to a thread at once: enough to hide the overhead, few enough to share evenly.
BLOCK = 64


def query_min_max(
    features: Features,
    query_pointers: npt.ArrayLike,
    *,
    queries: npt.ArrayLike | None = None,
    columns: npt.ArrayLike | None = None,
) -> Features:
    """Return features scaled to [0, 1] within each query, as a new matrix.

    Args:
        features: float32, shape (rows, features); may be a read-only memory map.
        query_pointers: first row of each query and the end, shape (queries + 1,).
        queries: indices of the queries to return, in this order; all by default.
        columns: indices of the features to return; all by default.
    """
    source, starts, stops = rows_of(features, query_pointers, queries)
    width = source.shape[1]
    chosen = np.arange(width) if columns is None else np.asarray(columns, dtype=np.int64)
    ends = np.cumsum(stops - starts)
    scaled = np.empty((int(ends[-1]) if len(ends) else 0, len(chosen)), dtype=np.float32)

    def scale(first: int, last: int) -> int:
        block = slice(first, last)
        return int(_scale(source, starts[block], stops[block], ends[block], chosen, scaled))

    bad_rows = map_blocks(scale, total=len(starts), block=BLOCK)
    bad = next((row for row in bad_rows if row >= 0), None)
    if bad is not None:
        raise DataError(f"row {bad} has a feature that is not a finite number")
    return scaled


def rows_of(
    features: Features, query_pointers: npt.ArrayLike, queries: npt.ArrayLike | None
) -> tuple[Features, Ints, Ints]:
    """Return the features for kernels, with the first and end row of each query."""
    # Always read-only, so that kernels are compiled once for memory maps and arrays alike.
    source = np.ascontiguousarray(features, dtype=np.float32).view(np.ndarray)
    source.flags.writeable = False
    pointers = np.asarray(query_pointers, dtype=np.int64)
    starts, stops = pointers[:-1], pointers[1:]
    if queries is not None:
        chosen = np.asarray(queries, dtype=np.int64)
        return source, starts[chosen], stops[chosen]
    return source, starts.copy(), stops.copy()


@exact
def _scale(
    source: Features,
    starts: Ints,
    stops: Ints,
    ends: Ints,
    columns: Ints,
    scaled: Features,
) -> int:
    """Fill the rows of `scaled` that end at `ends`; return the first non-finite row, or −1."""
    width = source.shape[1]
    low = np.empty(len(columns))
    span = np.empty(len(columns))
    for query in range(len(starts)):
        start, stop = starts[query], stops[query]
        lo = source[start].copy()
        hi = source[start].copy()
        for row in range(start, stop):
            finite = True
            for column in range(width):
                value = source[row, column]
                finite &= np.isfinite(value)
                lo[column] = min(lo[column], value)
                hi[column] = max(hi[column], value)
            if not finite:
                return row
        for column in range(len(columns)):
            low[column] = lo[columns[column]]
            span[column] = hi[columns[column]] - low[column]
            if span[column] == 0.0:
                span[column] = 1.0  # then all values equal low, and 0/1 is the 0 we want
        target = ends[query] - (stop - start)
        for row in range(start, stop):
            for column in range(len(columns)):
                scaled[target, column] = (source[row, columns[column]] - low[column]) / span[column]
            target += 1
    return -1
