"""The best of many scores when few of them change: a knock-out tournament.

Leaves are a query's items in the order of their tie keys; an inner node holds the better of its two
children, the root the best of all. A changed score replays only the matches on its way to the root,
so a session costs the logarithm of the number of candidates. Between equals the left one wins,
which is the one with the lower tie key.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank.compiled import leaf

Floats = npt.NDArray[np.float64]
Leaves = npt.NDArray[np.int32]

EMPTY = -np.inf


@leaf
def width(leaves: int) -> int:
    """Return the number of leaves a tree needs: the next power of two."""
    size = 1
    while size < leaves:
        size *= 2
    return size


@leaf
def build(scores: Floats, winners: Leaves, size: int) -> None:
    """Play all matches; the leaves' scores stand in scores[size : 2 * size], the root is node 1."""
    for place in range(size):
        winners[size + place] = place
    for node in range(size - 1, 0, -1):
        left = 2 * node
        best = left + (scores[left + 1] > scores[left])  # no branch: nobody could predict it
        scores[node] = scores[best]
        winners[node] = winners[best]


@leaf
def put(scores: Floats, winners: Leaves, size: int, place: int, score: float) -> None:
    """Give the leaf in a place a new score and play its matches again.

    The other side of every match is known beforehand, so the processor loads them all at once.
    """
    node = size + place
    winner = winners[node]
    scores[node] = score
    while node > 1:
        other = node ^ 1
        rival = scores[other]
        beaten = (rival > score) | ((rival == score) & (node & 1 == 1))
        score = rival if beaten else score
        winner = winners[other] if beaten else winner
        node >>= 1
        scores[node] = score
        winners[node] = winner
