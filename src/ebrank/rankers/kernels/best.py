"""The best of a few items, in order."""

from __future__ import annotations

from ebrank.compiled import inner, leaf
from ebrank.typing import Floats, Ints


@leaf
def write_best(scores: Floats, ties: Floats, n: int, length: int, best: Ints) -> None:
    """Write the `length` best of the first n items; of equal scores, the lower tie key wins.

    Items are inserted into the list of the best so far; most fail the first comparison.

    >>> import numpy as np
    >>> best = np.zeros(2, np.int64)
    >>> write_best(np.array([0.5, 2.0, 2.0]), np.array([0.1, 0.9, 0.3]), 3, 2, best)
    >>> best
    array([2, 1])
    """
    listed = 0
    for item in range(n):
        place = listed
        while place > 0 and precedes(scores, ties, item, best[place - 1]):
            place -= 1
        if place < length:
            listed = min(listed + 1, length)
            for later in range(listed - 1, place, -1):
                best[later] = best[later - 1]
            best[place] = item


@inner
def precedes(scores: Floats, ties: Floats, x: int, y: int) -> bool:
    """Return whether item x ranks before item y."""
    if scores[x] != scores[y]:
        return bool(scores[x] > scores[y])
    return bool(ties[x] < ties[y])
