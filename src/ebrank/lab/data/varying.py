"""Which features differ within some query: those that per-query scaling does not make constant."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank.kernels.compiled import kernel
from ebrank.kernels.min_max import BLOCK, rows_of
from ebrank.kernels.threads import map_blocks
from ebrank.typing import Bools, Features, Ints


def varying_features(
    features: Features,
    query_pointers: npt.ArrayLike,
    *,
    queries: npt.ArrayLike | None = None,
) -> Bools:
    """Return for each feature whether it differs within any of the queries.

    Scaling turns a feature that differs within a query into values from 0 to 1 and any other into
    zeros, so these are exactly the features that are not constant after scaling.

    >>> features = np.array([[1, 7], [3, 7], [9, 1], [5, 1]], dtype=np.float32)
    >>> varying_features(features, [0, 2, 4])
    array([ True, False])
    """
    source, starts, stops = rows_of(features, query_pointers, queries)
    masks = map_blocks(
        lambda first, last: _varying(source, starts[first:last], stops[first:last]),
        total=len(starts),
        block=BLOCK,
    )
    varying: Bools = np.any(np.array(masks).reshape(-1, source.shape[1]), axis=0)
    return varying


@kernel
def _varying(source: Features, starts: Ints, stops: Ints) -> Bools:
    """Return for each column whether it differs within any of the queries."""
    varying = np.zeros(source.shape[1], dtype=np.bool_)
    for query in range(len(starts)):
        start = starts[query]
        for row in range(start + 1, stops[query]):
            for column in range(source.shape[1]):
                varying[column] |= source[row, column] != source[start, column]
    return varying
