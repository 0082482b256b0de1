"""What each count is worth, given an examination curve and the weights of behaviors.

n, c, C and E are weighted sums of an item's counts (eq:logsnC). The weights are whole multiples of
2⁻³⁰, so that the sums are exact: they depend neither on the order in which counts are added, nor on
what adds them: a kernel, NumPy or a database. Sums are 64 bits wide, enough for c, C and E up to
2³³ of one item: more than any item has, unless its clicks and the curve contradict each other.

The p of a band is the mean over its ranks, down to the last that users examine.

>>> valuation = Valuation.of(Examination(cutoff=5), slots=5)
>>> (valuation.exposure * UNIT).round(3)
array([1.   , 0.631, 0.5  , 0.431, 0.387])
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ebrank.errors import ParameterError
from ebrank.evidence.behaviors import CLICKS, Behaviors
from ebrank.evidence.examination import Examination
from ebrank.evidence.slots import ranks_of, slot_name
from ebrank.typing import Floats, Ints

UNIT = 2.0**-30
SMALLEST_P = 1e-4
"""The lowest examination probability above 0: a click there counts for ten thousand."""


class Valuation(NamedTuple):
    """Weights of counts in units of 2⁻³⁰, in the order in which kernels read them.

    Slots that nobody examines are worth nothing: their items were not really shown.

    Attributes:
        table: for each slot 1 if users examine it, else 0; then p of each slot; then for each
            behavior its weight w at each slot; then for each behavior w/p at each slot.
        slots: number of slots.
        behaviors: number of behaviors.
    """

    table: Ints
    slots: int
    behaviors: int

    @classmethod
    def of(
        cls, examination: Examination, behaviors: Behaviors = CLICKS, *, slots: int
    ) -> Valuation:
        """Return the weights for a curve; computed once, so the table is read-only."""
        return _valuation(examination, behaviors, slots)

    @classmethod
    def by_slot(cls, p: Floats, behaviors: Behaviors = CLICKS) -> Valuation:
        """Return the weights for the probability that users examine each slot."""
        seen = p > 0.0
        if np.any(seen & (p < SMALLEST_P)):
            slot = int(np.argmax(seen & (p < SMALLEST_P)))
            raise ParameterError(
                f"users examine {slot_name(slot)} with probability {p[slot]:.2g}, too rarely to "
                f"learn from. Make it at least {SMALLEST_P:g}, or 0 with a cutoff"
            )
        weights = np.array(behaviors.weights)[:, None]
        worth = np.concatenate([p, *(weights * seen), *(weights / np.where(seen, p, np.inf))])
        table = np.concatenate([seen, np.rint(worth / UNIT)]).astype(np.int64)
        table.flags.writeable = False
        return cls(table, len(p), len(weights))

    @property
    def exposure(self) -> Ints:
        """The examination probability of each slot, in units."""
        return self.table[self.slots : 2 * self.slots]


@lru_cache(maxsize=256)
def _valuation(examination: Examination, behaviors: Behaviors, slots: int) -> Valuation:
    p = np.array([_mean_examination(examination, slot) for slot in range(slots)])
    return Valuation.by_slot(p, behaviors)


def _mean_examination(examination: Examination, slot: int) -> float:
    """Return the mean p of a slot's ranks down to the last that users examine."""
    p: Floats = examination(ranks_of(slot))
    return float(np.trim_zeros(p, "b").mean()) if p.any() else 0.0
