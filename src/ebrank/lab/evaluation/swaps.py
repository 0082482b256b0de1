"""Lists with random swaps, which say how likely each item was at its rank.

A share of lists is drawn at random, in each of them a pair of neighbors, and a coin decides whether
the two change places. That costs little, and buys two things no log of one fixed order can give:
how likely each item was at its rank, so that clicks can be weighted into those of another order;
and the same items at both ranks of a pair, so that the ratio of click rates is that of examination.

>>> swap = draw_swap(key=4, ranks=5, share=0.5)
>>> swap
Swap(pair=2, swapped=True)
>>> swap.applied([10, 20, 30, 40, 50])
[10, 20, 40, 30, 50]
>>> rank_propensity([1, 1, 2], [1, 2, 2], ranks=5, share=0.5)
array([0.9375, 0.0625, 0.875 ])

References:
    Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay and Wen (2018): Offline evaluation of ranking
    policies with click models. KDD. arXiv 1804.10488.
    Joachims, Swaminathan and Schnabel (2017): Unbiased learning-to-rank with biased feedback. WSDM.
    arXiv 1608.04468.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar, Unpack

import numpy as np
import numpy.typing as npt
import xxhash

from ebrank.errors import ParameterError
from ebrank.statistics.sequential import Interval, Moments, Rule, interval
from ebrank.typing import Floats

T = TypeVar("T")
NO_PAIR = -1


class Swap(NamedTuple):
    """What chance did to a list.

    Attributes:
        pair: the upper rank of the pair that was drawn, from 0; `NO_PAIR` outside of the slice.
        swapped: whether the two changed places.
    """

    pair: int
    swapped: bool

    def applied(self, order: Sequence[T]) -> list[T]:
        """Return an order after the swap; a pair beyond its end changes nothing."""
        items, upper = list(order), self.pair
        if self.swapped and upper + 1 < len(items):
            items[upper], items[upper + 1] = items[upper + 1], items[upper]
        return items


def draw_swap(key: int, ranks: int, share: float) -> Swap:
    """Return the swap of the list with this key: in a `share` of lists, a pair is drawn."""
    if not 0.0 <= share <= 1.0:
        raise ParameterError(f"share must be between 0 and 1, not {share}")
    bits = xxhash.xxh3_64_intdigest(b"swap", key)
    if ranks < 2 or (bits >> 11) * 2.0**-53 >= share:
        return Swap(NO_PAIR, False)
    bits = xxhash.xxh3_64_intdigest(b"pair", key)
    return Swap((bits >> 1) % (ranks - 1), bool(bits & 1))


def rank_propensity(
    intended: npt.ArrayLike, ranks_shown: npt.ArrayLike, *, ranks: int, share: float
) -> Floats:
    """Return how likely items of some intended ranks were at the ranks shown, all from 1.

    To a neighboring rank it is share/(2(ranks − 1)); the rest is for the rank itself.
    """
    base, at = np.broadcast_arrays(np.asarray(intended), np.asarray(ranks_shown))
    move = share / (2.0 * max(ranks - 1, 1))
    stay = 1.0 - move * ((base > 1).astype(np.float64) + (base < ranks))
    return np.where(base == at, stay, np.where(np.abs(base - at) == 1, move, 0.0))


def neighbor_moments(propensities: npt.ArrayLike, clicks: npt.ArrayLike) -> list[Moments]:
    """Return, for each pair of ranks, the sums whose mean is p of the lower over p of the upper.

    Lists in which both items kept their ranks are weighted to be as many as those in which they
    changed places. Then both were at either rank equally often, so clicks at rank k + 1 over clicks
    at rank k are pₖ₊₁/pₖ, whatever the items are (Joachims et al.).

    Args:
        propensities: as a store logs them: how likely each item was at its rank, shape (lists,
            ranks).
        clicks: whether users clicked, of the same shape.
    """
    chances, clicked = np.asarray(propensities, np.float64), np.asarray(clicks, np.float64)
    if clicked.ndim != 2 or clicked.shape != chances.shape or clicked.shape[1] < 2:
        raise ParameterError("propensities and clicks must be two tables of lists by two ranks")
    moved, last = chances < 0.5, clicked.shape[1] - 2
    swap = np.where(moved.any(axis=1), chances.min(axis=1), 1.0 - chances[:, 0])
    made = []
    for upper in range(last + 1):
        pair = slice(upper, upper + 2)
        others = (upper > 0) + (upper < last)  # pairs that would move one of the two
        kept = swap / (1.0 - (1 + others) * swap)  # relative to the lists that swap the pair
        weights = np.where(moved[:, pair].all(axis=1), 1.0, kept * ~moved[:, pair].any(axis=1))
        high, low = weights * clicked[:, pair].T
        made.append(Moments.of(low, high))
    return made


def examination_curve(ratios: Sequence[Moments], **rule: Unpack[Rule]) -> list[Interval]:
    """Return p of each rank relative to the first, with intervals, from ratios of neighbors.

    pₖ/p₁ is the product of the ratios above; variances of their logarithms add up, since each pair
    has lists of its own. `tuned_for` counts clicks at the upper ranks.
    """
    log_p, variance, clicks, curve = 0.0, 0.0, 0.0, [Interval(1.0, 1.0, 1.0)]
    for ratio in ratios:
        rate = ratio.mean
        known = rate > 0.0
        log_p += np.log(rate) if known else np.nan
        variance += ratio.variance / rate**2 if known else np.inf
        clicks += ratio.weight
        logs = interval(log_p, variance, clicks, **rule)
        curve.append(Interval(*(float(np.exp(end)) for end in logs)))
    return curve
