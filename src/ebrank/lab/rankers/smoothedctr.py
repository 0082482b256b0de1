"""SmoothedCTR: what a shop does today, each item's click rate pulled towards that of all items.

The score is (c + s·g)/(n + s), with c clicks of n impressions, g the click rate of all items
together, and a strength s: the posterior mean under a Beta(s·g, s(1 − g)) prior. It knows neither
positions nor features, and it does not explore. g is that of train queries at the last update.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ebrank.lab.rankers.base import Ranker, Refit, ScoreModel, Trial, TrialLearner, param
from ebrank.model.formula import Formula


def smoothed_rate(clicks: float, shown: float, strength: float, mean: float) -> float:
    """Return (c + s·g)/(n + s)."""
    return (clicks + strength * mean) / (shown + strength)


SMOOTHED = Formula(smoothed_rate, "strength", "mean")


@dataclass(frozen=True)
class SmoothedCTR(Ranker):
    """Sorts by smoothed click rates."""

    name = "smoothedctr"
    help = "Sort by each item's click rate, smoothed towards that of all items."
    settings = ("non-concate",)

    strength: float = param(
        5.0,
        "impressions that the mean click rate counts for",
        at_least=0.001,
        grid=(1.0, 5.0, 20.0, 50.0, 100.0, 200.0),
    )

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that computes the mean at every update."""
        return Refit(partial(self._model, trial))

    def _model(self, trial: Trial) -> ScoreModel:
        """Return the model; items have no individual numbers."""
        data = trial.dataset
        train = trial.sums().rows(data.rows_in("train"))
        mean = float(train.clicks.sum() / max(train.shown.sum(), 1.0))
        score = SMOOTHED.bind(strength=self.strength, mean=mean)
        return ScoreModel(a=np.zeros(data.n_rows), b=np.zeros(1), serve=score, offline=score)
