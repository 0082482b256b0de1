"""Forgetting: what users did long ago counts less and less, and counts stay whole numbers.

Time is split into epochs of a quarter of the half-life. From one epoch to the next a count n
becomes (n·F + U) >> 32: F is 2^(-1/4) in units of 2^-32, and U, from 0 to 2^32 - 1, is a hash of
the item, the epoch, and what was counted. So a count fades to exactly 2^(-1/4) on average, with the
same bits for everyone who has the log. A count of 0 stays 0.

Impressions fade by outcome: passed over, clicked, and so on. Their sum, how often the item was
shown, fades with them, and there are never more outcomes than impressions.

>>> shown, clicks = 1000, 300
>>> counts = np.array([[[shown], [clicks]]], np.int32)
>>> forgotten(counts, np.array([7], np.uint64), 0, EPOCHS).tolist()  # after one half-life
[[[500], [150]]]

Steps are taken one by one, so it does not matter when, as long as it is before anything is added in
a later epoch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.slots import SLOTS
from ebrank.kernels.mixing import child
from ebrank.typing import Keys, SmallInts

EPOCHS = 4
"""Epochs per half-life."""
DAY = 86400.0

_FACTOR = np.uint64(round(2.0**32 * 2.0 ** (-1.0 / EPOCHS)))
_HALF = np.uint64(32)
_OUTCOMES = 256  # more than can be declared, so that numbers of draws never collide


@dataclass(frozen=True)
class HalfLife:
    """After how many days an impression counts half, and since when.

    >>> HalfLife(days=20.0, since=0.0).epoch(10 * DAY)
    2
    """

    days: float
    since: float = 0.0

    def epoch(self, time: float) -> int:
        """Return the epoch of a time; 0 before forgetting began."""
        return max(math.floor((time - self.since) * EPOCHS / (self.days * DAY)), 0)

    def remembered(self, seconds: float) -> float:
        """Return how many of these seconds still count, by today's weights."""
        mean_life = self.days * DAY / math.log(2.0)
        return -mean_life * math.expm1(-seconds / mean_life)


def forgotten(
    counts: SmallInts, keys: Keys, epochs: int | npt.NDArray[np.int64], until: int
) -> SmallInts:
    """Return counts, of shape (items, outcomes, slots), as they are in a later epoch.

    Args:
        counts: impressions, and how many of them had each outcome.
        keys: a unique number for each item.
        epochs: the epoch of all counts, or of each item's.
        until: the epoch to bring them to.
    """
    faded = counts.astype(np.int64)
    faded[:, SHOWN] -= faded[:, SHOWN + 1 :].sum(axis=1)
    began = np.broadcast_to(np.asarray(epochs, np.int64), len(counts))
    cells = np.arange(counts.shape[1])[:, None] * SLOTS + np.arange(counts.shape[2])
    for epoch in range(int(began.min(initial=until)), until):
        left = np.flatnonzero((began <= epoch) & faded.any(axis=(1, 2)))
        if len(left):
            numbers = epoch * _OUTCOMES * SLOTS + cells
            draws = child(keys[left, None, None], numbers) >> _HALF
            faded[left] = (faded[left].astype(np.uint64) * _FACTOR + draws) >> _HALF
        elif epoch >= began.max():
            break  # nothing is left
    faded[:, SHOWN] += faded[:, SHOWN + 1 :].sum(axis=1)
    return faded.astype(counts.dtype)


def item_keys(key: int, items: Sequence[int]) -> Keys:
    """Return a unique number for each item of a query, given one for the query."""
    return child(np.array([key], np.uint64), np.array(items, np.int64))
