"""PBM-UCB (Lagrée, Vernade and Cappé, Multiple-play bandits in the position-based model, 2016).

Each query is a separate bandit, whose arms are its items; features play no part. With S clicks in N
impressions of an item, and Ñ = Σ p over these, which is the exposure E by the assumed curve, the
upper confidence bound of that paper is

    S/Ñ + √(N/Ñ)·√(δ/(2Ñ)),    δ = (1 + ε)·log t

where t counts the lists of the query. An item nobody has seen comes first, as in the paper, which
starts by showing every item once. log t is from the last model update.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.estimators import EXPOSURE, click_rate
from ebrank.lab.rankers.base import Ranker, Refit, ScoreModel, Trial, TrialLearner, param
from ebrank.model.formula import Formula

UNSEEN = 1e9
"""Above the bound of every item ever shown: p is 0.0001 or more unless it is 0."""


def pbm_bound(b: float, shown: float, clicks: float, exposure: float, delta: float) -> float:
    """Return S/Ñ + √(N/Ñ)·√(δ/(2Ñ)), δ being `delta` times b = log t."""
    if exposure <= 0.0:
        return UNSEEN
    width = np.sqrt(shown / exposure) * np.sqrt(delta * b / (2.0 * exposure))
    return clicks / exposure + width  # type: ignore[no-any-return]


BOUND = Formula(pbm_bound, "delta")
RATE = Formula(click_rate, given=EXPOSURE.quantities).bind()


@dataclass(frozen=True)
class PBMUCB(Ranker):
    """Sorts by upper confidence bounds of debiased click rates."""

    name = "pbmucb"
    help = "Upper confidence bounds of click rates debiased by position, each query by itself."
    settings = ("non-concate",)

    delta: float = param(
        0.03,  # best on MQ2008's validation queries
        "factor of log t in the bound; 1 + ε in the paper, which plans for many more lists",
        at_least=0,
        grid=(0.0, 0.01, 0.03, 0.1, 0.3, 1.0),
    )

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that counts the lists of each query."""
        return Refit(partial(self._model, trial))

    def _model(self, trial: Trial) -> ScoreModel:
        """Return the model: b is log t of the item's query; offline there is no bonus."""
        data, first = trial.dataset, trial.stats.counts[:, SHOWN, 0]
        lists = np.add.reduceat(first.astype(np.float64), data.query_pointers[:-1])
        logs = np.log(np.maximum(lists, 1.0))  # one item was first in each list
        return ScoreModel(
            a=np.zeros(data.n_rows),
            b=np.repeat(logs, data.candidates),
            serve=BOUND.bind(delta=self.delta),
            offline=RATE,
        )
