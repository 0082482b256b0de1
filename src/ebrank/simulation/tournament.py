"""The best of many scores when few of them change: a knock-out tournament.

Leaves are slots, an inner node holds the better of its two children, the root the best of all. A
changed score replays only the matches on its way to the root, so a session costs the logarithm of
the number of candidates. Equal scores are decided by the lower tie key.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank.compiled import kernel

Slots = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

EMPTY = -np.inf


@kernel
def width(slots: int) -> int:
    """Return the number of leaves: the power of two that holds so many slots."""
    size = 1
    while size < slots:
        size *= 2
    return size


@kernel
def better(scores: Floats, ties: Floats, x: int, y: int) -> int:
    """Return the slot of the two that ranks first."""
    if scores[x] != scores[y]:
        return x if scores[x] > scores[y] else y
    return x if ties[x] <= ties[y] else y


@kernel
def build(tree: Slots, scores: Floats, ties: Floats, size: int) -> None:
    """Play all matches; `scores` and `ties` have `size` entries, empty slots score −∞."""
    for slot in range(size):
        tree[size + slot] = slot
    for node in range(size - 1, 0, -1):
        tree[node] = better(scores, ties, tree[2 * node], tree[2 * node + 1])


@kernel
def replay(tree: Slots, scores: Floats, ties: Floats, size: int, slot: int) -> None:
    """Play again the matches of one slot, whose score has changed."""
    node = (size + slot) >> 1
    while node >= 1:
        tree[node] = better(scores, ties, tree[2 * node], tree[2 * node + 1])
        node >>= 1
