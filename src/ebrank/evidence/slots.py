"""Where in a list something happened: ranks 1 to 10 one by one, deeper ranks in bands.

An item has a counter for each slot. Bands keep that number small however long the lists are, and a
curve hardly changes within a band.

>>> slot_of(1), slot_of(10), slot_of(12), slot_of(2000)
(0, 9, 10, 15)
>>> slots_for(5), slots_for(20)  # how many slots lists of this length need
(5, 12)
"""

from __future__ import annotations

import itertools

import numpy as np

from ebrank.errors import ParameterError
from ebrank.typing import Floats

FIRST_RANKS: tuple[int, ...] = (*range(1, 12), 16, 26, 51, 101, 301)
"""The first rank of each slot; a slot ends where the next one begins, the last one never."""

SLOTS = len(FIRST_RANKS)

_SLOT_OF = [
    slot
    for slot, (first, after) in enumerate(itertools.pairwise(FIRST_RANKS))
    for _ in range(first, after)
]


def slot_of(rank: int) -> int:
    """Return the slot of a rank, which counts from 1."""
    if rank < 1:
        raise ParameterError(f"ranks are counted from 1, not {rank}")
    return _SLOT_OF[rank - 1] if rank <= len(_SLOT_OF) else SLOTS - 1


def slots_for(length: int) -> int:
    """Return how many slots lists of this length need."""
    return slot_of(length) + 1


def typical_ranks(slots: int = SLOTS) -> Floats:
    """Return the rank that stands for each slot: the geometric mean of its first and last.

    >>> typical_ranks(12).round(2)
    array([ 1.  ,  2.  ,  3.  ,  4.  ,  5.  ,  6.  ,  7.  ,  8.  ,  9.  ,
           10.  , 12.85, 20.  ])
    """
    first = np.array(FIRST_RANKS, np.float64)
    last = np.append(first[1:] - 1.0, 1000.0)
    middle: Floats = np.sqrt(first * last)
    return middle[:slots]
