"""Cum-NDCG: the discounted sum of the NDCG of all lists served so far (eq:cumDCG)."""

from __future__ import annotations

import numpy as np

from ebrank.typing import Floats


def cum_ndcg(served: Floats, discount: float, before: float = 0.0) -> float:
    """Return Σ_τ γ^(t−τ)·NDCG_τ after the lists `served`, given the value before them.

    >>> cum_ndcg(np.array([1.0, 0.5, 1.0]), discount=0.5)
    1.5
    >>> cum_ndcg(np.array([1.0]), discount=0.5, before=cum_ndcg(np.array([1.0, 0.5]), 0.5))
    1.5
    """
    ages = np.arange(len(served) - 1, -1, -1)
    since = (served * discount**ages).sum()  # no dot product: BLAS rounds by its thread count
    return float(since + before * discount ** len(served))
