"""The compiled part of `significance`: sums of randomly flipped values, eight at a time.

Flipping the signs of all values not in a set S turns their sum into 2·Σ_S − Σ. The sum over each of
the 256 subsets of eight consecutive values is looked up in a table, so a flip of 1,600 queries is
200 additions.
"""

from __future__ import annotations

import numpy as np

from ebrank import streams
from ebrank.compiled import kernel
from ebrank.typing import Floats

BITS = 8
SUBSETS = 1 << BITS
OCTETS_PER_WORD = 8


@kernel
def octet_sums(values: Floats) -> Floats:
    """Return the sum over each subset of each eight values, shape (octets, 256)."""
    octets = (len(values) + BITS - 1) // BITS
    sums = np.zeros((octets, SUBSETS))
    for octet in range(octets):
        for subset in range(SUBSETS):
            for bit in range(min(BITS, len(values) - octet * BITS)):
                if (subset >> bit) & 1:
                    sums[octet, subset] += values[octet * BITS + bit]
    return sums


@kernel
def count_as_far(
    sums: Floats, whole: float, border: float, key: np.uint64, exact: bool, start: int, stop: int
) -> int:
    """Return how many of the flips start to stop have an absolute sum of `border` or more.

    An exact flip chooses the signs by the bits of its number, any other by its own random bits.
    """
    count = 0
    for flip in range(start, stop):
        chosen = 0.0
        own = streams.child(key, flip)
        for octet in range(len(sums)):
            if octet % OCTETS_PER_WORD == 0:
                word = np.uint64(flip)
                if not exact:
                    word = streams.child(own, octet // OCTETS_PER_WORD)
            chosen += sums[octet, np.int64(word & np.uint64(SUBSETS - 1))]
            word >>= np.uint64(BITS)
        count += abs(2.0 * chosen - whole) >= border
    return count
