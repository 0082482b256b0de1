"""How counts become evidence for a prior: `ips`, `exposure`, or `exact`.

| estimator | hits | trials | |
|---|---|---|---|
| `ips` | C, clicks divided by p of their rank | n, impressions | the paper's; may exceed 1 |
| `exposure` | c, plain clicks | E, summed examination | varies less |
| `exact` | c | E | beside them, the counts by rank: the position-based model's likelihood |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ebrank.evidence.stats import BehaviorStats, Sums
from ebrank.typing import Floats


@dataclass(frozen=True)
class Estimator:
    """A kind of evidence.

    Attributes:
        name: its name in policies.
        hits: the sum that counts as successes.
        trials: the sum that counts as trials.
        by_rank: whether posteriors also read the counts at each rank.
    """

    name: str
    hits: str
    trials: str
    by_rank: bool = False

    @property
    def quantities(self) -> Mapping[str, str]:
        """What formulas call `hits` and `trials`."""
        return {"hits": self.hits, "trials": self.trials}

    def matrix(self, stats: BehaviorStats, sums: Sums) -> Floats:
        """Return the evidence of each item as a row of numbers, for training.

        Debiased clicks may exceed the trials; that does not harm the formulas.
        """
        if not self.by_rank:
            return np.column_stack([getattr(sums, self.hits), getattr(sums, self.trials)])
        width = math.prod(stats.counts.shape[1:])
        return stats.counts.reshape(len(stats), width).astype(np.float64)

    def rate(self, sums: Sums) -> Floats:
        """Return hits over trials, the relevance by clicks alone; 0 for items never shown."""
        hits, trials = getattr(sums, self.hits), getattr(sums, self.trials)
        rate: Floats = np.divide(hits, trials, out=np.zeros(len(hits)), where=trials > 0.0)
        return rate


def click_rate(hits: float, trials: float) -> float:
    """Return the relevance of an item by clicks alone; 0 if nobody has seen it."""
    return hits / trials if trials > 0.0 else 0.0


IPS = Estimator("ips", "weighted_clicks", "shown")
EXPOSURE = Estimator("exposure", "clicks", "exposure")
EXACT = Estimator("exact", "clicks", "exposure", by_rank=True)
ESTIMATORS = {estimator.name: estimator for estimator in (IPS, EXPOSURE, EXACT)}
