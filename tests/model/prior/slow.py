"""What users did with an item, and its likelihood under the position-based model, slowly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from ebrank import BehaviorStats, Examination
from ebrank.evidence import Behaviors
from ebrank.evidence.sums import ItemCounts
from ebrank.evidence.valuation import UNIT
from ebrank.typing import Floats
from tests.evidence.logs import counted_weights


@dataclass(frozen=True)
class Item:
    """The counts of one item, and how far down users look."""

    stats: BehaviorStats
    curve: Examination

    @property
    def evidence(self) -> ItemCounts:
        """What functions of exact evidence take after the prior."""
        valuation = self.stats.valuation(self.curve)
        counts: Any = self.stats.counts.ravel().astype(np.float64)
        table: Any = valuation.table
        return ItemCounts(counts, valuation.slots, valuation.behaviors, table)

    @property
    def p(self) -> Floats:
        """The probability that users look at each slot."""
        return np.asarray(self.stats.valuation(self.curve).exposure * UNIT, np.float64)

    @property
    def clicks(self) -> Floats:
        """Clicks at each slot that users look at, and other behaviors by their weight."""
        outcomes = self.stats.counts[0, 1:].astype(np.float64)
        return np.asarray(counted_weights(self.stats.behaviors) @ outcomes * (self.p > 0))

    def log_likelihood(self, u: Floats) -> Floats:
        """Return c·log R + Σ passed·log(1 − p·R) at u = log(R/(1 − R))."""
        passed = (self.stats.counts[0, 0] - self.clicks) * (self.p > 0)
        rest = 1.0 - self.p + np.multiply.outer(expit(-u), self.p)
        logs = np.log(np.maximum(rest, 1e-300))
        return np.asarray(self.clicks.sum() * log_expit(u) + logs @ passed)


def some_counts(
    rng: np.random.Generator, behaviors: Behaviors, most: float, curve: Examination | None = None
) -> BehaviorStats:
    """Return counts of one item, from none at all to many.

    Given a curve, clicks are those of a relevance from 0.004 to 0.95.
    """
    slots = int(rng.integers(1, 17 if curve is None else 11))
    scale = np.exp(rng.uniform(-1, np.log(most)))
    counts = np.zeros((1, behaviors.outcomes, slots), np.int32)
    counts[0, 0] = rng.poisson(scale * rng.random(slots) * rng.integers(0, 2, slots))
    if curve is None:
        chance = rng.choice([0.0, 0.01, 0.3, 1.0])
    else:
        chance = expit(rng.uniform(-5.5, 3)) * curve(np.arange(slots) + 1)
    counts[0, 1 + rng.integers(len(behaviors.all))] = rng.binomial(counts[0, 0], chance)
    return BehaviorStats(counts, behaviors)
