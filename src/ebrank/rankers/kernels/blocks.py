"""TopRank's blocks and comparisons, compiled."""

from __future__ import annotations

import math

import numpy as np

from ebrank.compiled import inner, kernel
from ebrank.rankers.toprank import PairCounts
from ebrank.typing import Ints

C = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))


@kernel
def all_blocks(pointers: Ints, pairs: PairCounts) -> Ints:
    """Return the block of each row within its query, the best being 0."""
    blocks = np.empty(pointers[-1], np.int64)
    better = np.empty(pointers[-1], np.int64)
    for q in range(len(pointers) - 1):
        n = pointers[q + 1] - pointers[q]
        write_blocks(pairs, pairs.offsets[q], n, blocks[pointers[q] : pointers[q + 1]], better)
    return blocks


@inner
def write_blocks(pairs: PairCounts, offset: int, n: int, blocks: Ints, better: Ints) -> None:
    """Write the blocks of n items; `better` is room for as many numbers.

    A block takes the items that no remaining item beats. Mistakes may close a circle, in which
    every item has a better one: then the block takes all that are left.
    """
    for i in range(n):
        blocks[i], better[i] = -1, 0
    for i in range(n):
        for j in range(i):
            place = offset + pair(i, j)
            if pairs.trials[place] < 0:
                better[j if pairs.net[place] > 0 else i] += 1
    block, left = 0, n
    while left > 0:
        before = left
        for i in range(n):
            if blocks[i] < 0 and better[i] == 0:
                blocks[i] = block
                left -= 1
        if left == before:
            for i in range(n):
                if blocks[i] < 0:
                    blocks[i] = block
            return
        for i in range(n):
            if blocks[i] == block:
                for j in range(n):
                    if blocks[j] < 0 and is_better(pairs, offset, i, j):
                        better[j] -= 1
        block += 1


@inner
def pair(i: int, j: int) -> int:
    """Return the place of a pair i > j among those of its query."""
    return i * (i - 1) // 2 + j


@inner
def is_better(pairs: PairCounts, offset: int, i: int, j: int) -> bool:
    """Return whether item i is known to be better than another item j."""
    place = offset + pair(max(i, j), min(i, j))
    ahead = pairs.net[place] if i > j else -pairs.net[place]
    return bool(pairs.trials[place] < 0 and ahead > 0)


@inner
def prefer(pairs: PairCounts, offset: int, i: int, j: int, delta: float) -> bool:
    """Record that item i was clicked and item j was not; return whether that settles the pair."""
    place = offset + pair(max(i, j), min(i, j))
    if pairs.trials[place] < 0:
        return False
    pairs.trials[place] += 1
    pairs.net[place] += 1 if i > j else -1
    trials = pairs.trials[place]
    ahead = pairs.net[place] if i > j else -pairs.net[place]
    if ahead < np.sqrt(2.0 * trials * np.log(C / delta * np.sqrt(trials))):
        return False
    pairs.trials[place] = -trials
    return True
