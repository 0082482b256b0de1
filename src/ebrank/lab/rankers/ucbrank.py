"""UCBRank (Yang et al. 2022): features until an item is shown, clicks ever after, and a bonus.

The bonus ε/max(√n, 0.001) is 1000·ε for an item never shown: from ε = 0.01 or so, new items are
shown at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ebrank.evidence.estimators import ESTIMATORS
from ebrank.lab.rankers.base import ScoreModel, param
from ebrank.lab.rankers.counterfactual import CLICK_RATES, LeastSquares, LeastSquaresRanker
from ebrank.model.formula import Formula


def upper_bound(
    a: float,
    shown: float,
    clicks: float,
    hits: float,
    trials: float,
    epsilon: float,
    clicked: float,
) -> float:
    """Return R̂ + ε/max(√n, 0.001); R̂ = hits/trials once shown (or clicked, if so), else a."""
    seen = clicks if clicked > 0.0 else shown
    return (hits / trials if seen > 0.0 else a) + epsilon / max(np.sqrt(shown), 1e-3)  # type: ignore[no-any-return]


BOUND = {
    name: Formula(upper_bound, "epsilon", "clicked", given=ESTIMATORS[name].quantities)
    for name in CLICK_RATES
}


@dataclass(frozen=True)
class UCBRank(LeastSquaresRanker):
    """Believes features or clicks, never both."""

    name = "ucbrank"
    help = "Relevance from features until shown, from clicks after, plus an upper confidence bound."
    settings = ("non-concate",)

    epsilon: float = param(
        0.4,  # best on MQ2008's validation queries
        "weight of the confidence bonus",
        at_least=0,
        grid=(0.0, 0.001, 0.01, 0.1, 0.2, 0.4, 0.8),
    )
    shown: Literal["shown", "clicked"] = param(
        "shown",
        "use clicks once an item was shown (shown) or clicked (clicked)",
        choices=("shown", "clicked"),
    )

    def model(self, squares: LeastSquares) -> ScoreModel:
        """Return the model: a is the relevance by features; offline there is no bonus."""
        model = squares.solve(concatenate=False)
        formula = BOUND[self.behavior]
        clicked = float(self.shown == "clicked")
        return ScoreModel(
            a=squares.scores(model),
            b=np.zeros(1),
            serve=formula.bind(epsilon=self.epsilon, clicked=clicked),
            offline=formula.bind(epsilon=0.0, clicked=clicked),
            weights=model.weights,
        )
