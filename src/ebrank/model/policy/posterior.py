"""Densities of relevance: what the dashboard draws, and what intervals are read from.

A density is computed in logits u = log(R/(1 − R)), at nodes u = center + width·sinh(t) with equal
steps of t: close together around the mean, and far out into the tails.

>>> alpha, beta = np.array([3.0]), np.array([9.0])
>>> bell = Densities.around_beta(alpha, beta, lambda u: log_beta(alpha, beta, u))
>>> bell.interval(0.9).round(2)
array([[0.08, 0.47]])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.valuation import UNIT
from ebrank.model.formula import NOTHING, ItemPrior
from ebrank.model.prior.families.beta import Beta
from ebrank.typing import Floats

NODES = 129
DRAWN = slice(None, None, 2)
"""Nodes that are points of a curve."""
REACH = 4.5
"""The nodes extend sinh(4.5) = 45 widths to either side."""
FURTHEST = 40.0
NARROWEST = 1e-7


@dataclass(frozen=True, eq=False)
class Densities:
    """Densities of the relevance of some items.

    Attributes:
        logits: a row of ascending nodes for each item.
        heights: of the density of the logit there, relative to the highest.
    """

    logits: Floats
    heights: Floats

    @classmethod
    def around(
        cls, mean: Floats, spread: Floats, log_density: Callable[[Floats], Floats]
    ) -> Densities:
        """Return densities, given about where they lie, and their logarithms at logits."""
        center = np.clip(mean, 1e-9, 1.0 - 1e-9)
        width = np.maximum(spread, NARROWEST) / (center * (1.0 - center))
        steps = np.sinh(np.linspace(-REACH, REACH, NODES))
        u = np.log(center / (1.0 - center))[:, None] + width[:, None] * steps
        logits = np.clip(u, -FURTHEST, FURTHEST)
        logs = log_density(logits)
        return cls(logits, np.exp(logs - logs.max(axis=1, keepdims=True)))

    @classmethod
    def around_beta(
        cls, alpha: Floats, beta: Floats, log_density: Callable[[Floats], Floats]
    ) -> Densities:
        """Return densities that lie about where Beta(α, β) does."""
        weight = alpha + beta
        spread = np.sqrt(alpha * beta / (weight + 1.0)) / weight
        return cls.around(alpha / weight, spread, log_density)

    def interval(self, level: float) -> Floats:
        """Return the ends of the central interval that holds this share, shape (items, 2)."""
        areas = 0.5 * (self.heights[:, 1:] + self.heights[:, :-1]) * np.diff(self.logits)
        below = np.cumsum(areas, axis=1)
        shares = np.array([0.5 - level / 2, 0.5 + level / 2])
        ends = [
            np.interp(shares * whole[-1], np.append(0.0, whole), u)
            for whole, u in zip(below, self.logits, strict=True)
        ]
        relevance: Floats = 1.0 / (1.0 + np.exp(-np.array(ends).reshape(-1, 2)))
        return relevance

    def points(self) -> list[list[tuple[float, float]]]:
        """Return pairs of a relevance and the density of the relevance there, for each item."""
        relevance = 1.0 / (1.0 + np.exp(-self.logits))
        area = np.asarray(np.trapezoid(self.heights, self.logits, axis=1))[:, None]
        density = self.heights / (area * np.maximum(relevance * (1.0 - relevance), 1e-12))
        rows = zip(relevance[:, DRAWN].tolist(), density[:, DRAWN].tolist(), strict=True)
        return [list(zip(*row, strict=True)) for row in rows]


def log_beta(alpha: Floats, beta: Floats, u: Floats) -> Floats:
    """Return the log of Beta(α, β) as a density of logits, a row per item, up to a constant."""
    return Beta().log_prior(ItemPrior(alpha, beta), NOTHING, u)


def log_likelihood(behavior: BehaviorStats, examination: Examination, u: Floats) -> Floats:
    """Return log R^c Π_k (1 − p_k·R)^passed_k at logits, a row per item."""
    valuation, counts = behavior.valuation(examination), behavior.counts
    weights = valuation.table[2 * valuation.slots :][: valuation.behaviors * valuation.slots]
    worth = weights.reshape(valuation.behaviors, -1) * UNIT
    clicked = np.einsum("ibs,bs->is", counts[:, 1:, : valuation.slots], worth)
    passed = counts[:, 0, : valuation.slots] - clicked
    rest = 1.0 / (1.0 + np.exp(u))
    total: Floats = -clicked.sum(axis=1)[:, None] * np.logaddexp(0.0, -u)
    for slot in np.flatnonzero(passed.any(axis=0)).tolist():
        p = float(valuation.exposure[slot]) * UNIT
        total += passed[:, slot, None] * np.log(np.maximum(1.0 - p + p * rest, 1e-300))
    return total
