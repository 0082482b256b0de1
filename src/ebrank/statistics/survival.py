"""How long it takes until something happens, when some items are not watched long enough to see it.

A new item may not have been shown when the run ends. Dropping it would flatter the ranker, and so
would counting it as shown at the end. Kaplan and Meier's estimate (1958) uses such an item for as
long as it was watched: of the n items still waiting and watched at an age, d see it happen, and the
share that still waits is multiplied by 1 − d/n.

Three of five items are shown, at ages 0, 2 and 2; one is watched in vain until age 1, one until 5:

>>> curve = kaplan_meier([0, 2, 2, -1, -1], [4, 4, 9, 1, 5])
>>> curve.x
array([0, 2])
>>> curve.share.round(3)  # 1/5, then 2/3 of the remaining 4/5
array([0.2  , 0.733])
>>> curve.median
2
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebrank.typing import Floats, Ints

ROUNDING = 1e-9
"""A product of fractions that should be one half may be a little less."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A step curve: the share for which it has happened by an age. It is 0 before the first step.

    Attributes:
        x: ages at which it happened to an item, rising, shape (steps,).
        share: the estimated share from that age on.
        error: its standard error.
        until: the age until which the last item was watched; the curve ends there.
    """

    x: Ints
    share: Floats
    error: Floats
    until: int

    @property
    def median(self) -> int | None:
        """The age by which it has happened to half of all; None if the curve ends before that."""
        reached = np.flatnonzero(self.share >= 0.5 - ROUNDING)
        return int(self.x[reached[0]]) if len(reached) else None

    def at(self, ages: npt.ArrayLike) -> Floats:
        """Return the share by each age."""
        steps = np.searchsorted(self.x, np.asarray(ages), side="right")
        return np.concatenate(([0.0], self.share))[steps]


def kaplan_meier(waits: npt.ArrayLike, watched: npt.ArrayLike) -> Curve:
    """Return the share for which it has happened by each age, with Greenwood's standard error.

    Args:
        waits: age at which it happened to each item, −1 where it was not seen to, shape (items,).
        watched: age until which each item was watched, that age included.

    With n_i waiting and watched at age i, and d_i of them seeing it happen, the share that still
    waits is S(x) = Π_{i ≤ x} (1 − d_i/n_i), and its variance S(x)² Σ_{i ≤ x} d_i/(n_i (n_i − d_i)).
    This assumes that items wait independently of each other. Items of one query compete for the
    same ranks and do not, so the error is rough.
    """
    happened, last = np.asarray(waits, np.int64), np.asarray(watched, np.int64)
    seen = happened >= 0
    x, d = np.unique(happened[seen], return_counts=True)
    left = np.sort(np.where(seen, happened, last))  # when each ceases to be waiting and watched
    n = len(left) - np.searchsorted(left, x, side="left")
    waiting = np.cumprod((n - d) / n, dtype=np.float64)
    terms = np.divide(d, n * (n - d), out=np.zeros(len(x)), where=n > d)
    error = waiting * np.sqrt(np.cumsum(terms))
    return Curve(x, 1.0 - waiting, error, until=int(last.max(initial=-1)))
