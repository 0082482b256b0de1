"""Measures of a run besides the NDCG of single lists: Cum-NDCG and exploitation ratios.

Cum-NDCG is the discounted sum of the NDCG of all lists served so far (eq:cumDCG). The exploitation
ratio is one feature's share of a linear model's weights (eq:weightRatio): a model that relies on
the behavior feature alone cannot tell new items apart, because they have no behavior yet.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank.typing import Floats


def cum_ndcg(served: Floats, discount: float, before: float = 0.0) -> float:
    """Return Σ_τ γ^(t−τ)·NDCG_τ after the lists `served`, given the value before them.

    >>> cum_ndcg(np.array([1.0, 0.5, 1.0]), discount=0.5)
    1.5
    >>> cum_ndcg(np.array([1.0]), discount=0.5, before=cum_ndcg(np.array([1.0, 0.5]), 0.5))
    1.5
    """
    ages = np.arange(len(served) - 1, -1, -1)
    since = (served * discount**ages).sum()  # not a dot product: BLAS rounds by thread count
    return float(since + before * discount ** len(served))


def exploitation_ratio(weights: npt.ArrayLike) -> Floats:
    """Return |w_j| / Σ_i |w_i| of each weight, shape (features,); all 0 if every weight is 0.

    >>> exploitation_ratio([1.0, -1.0, 2.0])
    array([0.25, 0.25, 0.5 ])
    """
    sizes = np.abs(np.asarray(weights, np.float64))
    total = sizes.sum()
    return sizes / total if total > 0 else sizes


def behavior_and_other(weights: npt.ArrayLike) -> tuple[float, float]:
    """Return the ratio of the last weight, that of x^b, and the largest of all others.

    >>> behavior_and_other([1.0, -3.0, 4.0])
    (0.5, 0.375)
    """
    ratios = exploitation_ratio(weights)
    return float(ratios[-1]), float(ratios[:-1].max())
