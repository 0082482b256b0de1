"""The best of many scores when few of them change: a knock-out tournament.

Leaves are a query's items in the order of their tie keys; an inner node holds the better of its two
children, the root the best of all. A changed score replays only the matches on its way to the root,
so a session costs the logarithm of the number of candidates. Between equals the left one wins,
which is the one with the lower tie key.

Scores are kept as whole numbers in the same order: a match then takes two cycles and no branch,
which no processor could predict.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebrank.kernels.compiled import inner
from ebrank.typing import Floats, Ints, SmallInts


class Tree(NamedTuple):
    """The marks and winners of all nodes; the root is node 1, the leaves begin at `size`."""

    marks: Ints
    winners: SmallInts
    size: int


EMPTY = -(2**63)
"""The mark of a leaf without a candidate: below that of every score."""

_SIGN = np.int64(63)
_MAGNITUDE = np.int64(2**63 - 1)


@inner
def mark(score: float) -> int:
    """Return an integer that sorts as the score does; 0 and −0 get the same."""
    # Floats sort like their bits, negative ones in reverse: flip these except for the sign. Adding
    # 0 turns −0 into 0.
    bits = np.float64(score + 0.0).view(np.int64)
    return bits ^ ((bits >> _SIGN) & _MAGNITUDE)  # type: ignore[return-value]


@inner
def width(leaves: int) -> int:
    """Return the number of leaves a tree needs: the next power of two."""
    size = 1
    while size < leaves:
        size *= 2
    return size


@inner
def build(tree: Tree) -> None:
    """Play all matches, given the leaves' marks."""
    marks, winners, size = tree
    for place in range(size):
        winners[size + place] = place
    for node in range(size - 1, 0, -1):
        left = 2 * node
        best = left + (marks[left + 1] > marks[left])
        marks[node] = marks[best]
        winners[node] = winners[best]


@inner
def put(tree: Tree, place: int, value: int) -> None:
    """Give the leaf at a place a new mark and play its matches again.

    The other side of every match is known beforehand and always loaded, so that no load waits for
    another. A rival on the left also wins a tie: its mark counts as one higher.
    """
    marks, winners, size = tree
    node = size + place
    winner = winners[node]
    marks[node] = value
    while node > 1:
        rival, rival_mark = winners[node ^ 1], marks[node ^ 1]
        beaten = rival_mark + (node & 1) > value
        value = rival_mark if beaten else value
        winner = rival if beaten else winner
        node >>= 1
        marks[node] = value
        winners[node] = winner


@inner
def insert(
    ties: Floats | SmallInts, rows: Ints, values: Floats, listed: int, row: int, value: float
) -> None:
    """Insert a row into the sorted list of the best, which has `listed` so far, if it belongs.

    Of equal values, the one whose row has the lower tie key comes first.
    """
    place = min(listed, len(rows) - 1)
    if listed == len(rows):
        last = rows[place]
        if values[place] > value or (values[place] == value and ties[last] < ties[row]):
            return
    while place > 0 and (
        value > values[place - 1]
        or (value == values[place - 1] and ties[row] < ties[rows[place - 1]])
    ):
        rows[place] = rows[place - 1]
        values[place] = values[place - 1]
        place -= 1
    rows[place] = row
    values[place] = value
