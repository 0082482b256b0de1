"""Where in a list something happened: ranks 1 to 10 one by one, deeper ranks in bands.

An item has a counter for each slot. Bands keep their number small even for long lists, and a curve
hardly changes within a band.

>>> slot_of(1), slot_of(10), slot_of(12), slot_of(2000)
(0, 9, 10, 15)
>>> slots_for(5), slots_for(20)  # how many slots lists of this length need
(5, 12)
>>> ranks_of(10), slot_name(10), slot_name(0)
(range(11, 16), 'ranks 11 to 15', 'rank 1')
"""

from __future__ import annotations

from bisect import bisect_right

from ebrank.errors import ParameterError

FIRST_RANKS: tuple[int, ...] = (*range(1, 12), 16, 26, 51, 101, 301)
"""The first rank of each slot; a slot ends where the next one begins, the last one never."""

SLOTS = len(FIRST_RANKS)
DEEPEST = 1000
"""The last slot counts as if it ended here."""


def slot_of(rank: int) -> int:
    """Return the slot of a rank, which counts from 1."""
    if rank < 1:
        raise ParameterError(f"ranks are counted from 1, not {rank}")
    return bisect_right(FIRST_RANKS, rank) - 1


def slots_for(length: int) -> int:
    """Return how many slots lists of this length need."""
    return slot_of(length) + 1


def ranks_of(slot: int) -> range:
    """Return the ranks of a slot."""
    return range(FIRST_RANKS[slot], (*FIRST_RANKS[1:], DEEPEST + 1)[slot])


def slot_name(slot: int) -> str:
    """Return the name of a slot in messages."""
    ranks = ranks_of(slot)
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"
