"""Is a prior calibrated? What it predicted for unseen items, beside what users did later.

Items are put into bins of about equal size by the predicted mean α/(α + β), and each bin's
predictions are compared with its clicks per exposure and with the true relevance:

>>> low = [[1, 9, 0, 2.0, 0.1], [1, 9, 1, 3.0, 0.1]]
>>> high = [[4, 6, 2, 4.0, 0.4], [4, 6, 1, 4.0, 0.4]]
>>> result = calibration(low + high, bins=2)
>>> for each in result.bins:
...     print(f"{each.predicted:.2f} {each.observed:.3f} ± {each.error:.3f} {each.relevance:.2f}")
0.10 0.200 ± 0.160 0.10
0.40 0.375 ± 0.125 0.40
>>> result.coverage  # relevances within the predicted central 90 % interval
1.0

A ranker shows good items more often. The click rate Σc/ΣE estimates the relevance that users met,
Σ E·R/ΣE, which weighs a bin's better items more than its worse ones; it lies above their mean
relevance even if every prediction is right. So judge the prior by `relevance`; `observed` is what
can be measured where the true relevance is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebrank.equations import posterior_interval
from ebrank.errors import ParameterError
from ebrank.typing import Floats


@dataclass(frozen=True)
class Bin:
    """Items with about the same prediction.

    Attributes:
        predicted: mean of α/(α + β).
        observed: click rate Σc/ΣE.
        error: its standard error, None for a single item.
        relevance: mean true relevance.
        count: items.
    """

    predicted: float
    observed: float
    error: float | None
    relevance: float
    count: int


@dataclass(frozen=True)
class Calibration:
    """Bins by rising prediction, and how often intervals hold the truth.

    Attributes:
        bins: those that hold items; none if there are no items.
        coverage: share of items whose true relevance lies in the predicted central interval; None
            if there are no items.
        level: what that share should be.
    """

    bins: tuple[Bin, ...]
    coverage: float | None
    level: float


def calibration(predictions: npt.ArrayLike, *, bins: int = 10, level: float = 0.9) -> Calibration:
    """Return how predictions compare with what happened.

    Args:
        predictions: `TrialResult.calibration`, of one trial or of several stacked: α, β, clicks c,
            exposure E > 0 and true relevance of each item, shape (items, 5).
        bins: at most this many, of about equal size; items with equal predictions stay together.
        level: of the central interval of Beta(α, β).
    """
    rows = _checked(predictions, bins, level)
    alpha, beta, _, _, relevance = rows.T
    if len(rows) == 0:
        return Calibration((), None, level)
    mean = alpha / (alpha + beta)
    lower = np.searchsorted(np.sort(mean), mean, side="left")  # how many have a lower prediction
    number = lower * bins // len(rows)
    low, high = posterior_interval(np.zeros_like(alpha), np.zeros_like(alpha), alpha, beta, level)
    return Calibration(
        bins=tuple(_bin(rows[number == i]) for i in np.unique(number)),
        coverage=float(np.mean((low <= relevance) & (relevance <= high))),
        level=level,
    )


def _bin(rows: Floats) -> Bin:
    """Return the bin of some items."""
    alpha, beta, clicks, exposure, relevance = rows.T
    rate = clicks.sum() / exposure.sum()
    return Bin(
        predicted=float((alpha / (alpha + beta)).mean()),
        observed=float(rate),
        error=_ratio_error(clicks, exposure, rate),
        relevance=float(relevance.mean()),
        count=len(rows),
    )


def _ratio_error(clicks: Floats, exposure: Floats, rate: float) -> float | None:
    """Return the standard error of r = Σc/ΣE: √(m/(m − 1)·Σ(c − r·E)²)/ΣE over m items.

    This is the usual linearization of a ratio, with items as independent units; it ignores that
    items of one query share its users.
    """
    m = len(clicks)
    if m < 2:
        return None
    residuals = clicks - rate * exposure
    return float(np.sqrt(m / (m - 1) * (residuals**2).sum()) / exposure.sum())


def _checked(predictions: npt.ArrayLike, bins: int, level: float) -> Floats:
    """Return the items as an array, or raise if something is wrong."""
    rows = np.asarray(predictions, np.float64)
    if rows.size == 0:
        rows = rows.reshape(0, 5)
    if rows.ndim != 2 or rows.shape[1] != 5 or not np.isfinite(rows).all():
        raise ParameterError(
            "each item needs five finite numbers: α, β, clicks, exposure, relevance"
        )
    alpha, beta, clicks, exposure, relevance = rows.T
    if np.any((alpha <= 0) | (beta <= 0) | (clicks < 0) | (exposure <= 0)):
        raise ParameterError("α, β and exposure must be above 0, and clicks 0 or more")
    if np.any((relevance < 0) | (relevance > 1)):
        raise ParameterError("relevance must lie between 0 and 1")
    if bins < 1 or not 0 < level < 1:
        raise ParameterError("bins must be 1 or more, and level between 0 and 1")
    return rows
