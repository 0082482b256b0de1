"""What the counterfactual rankers share: parameters, formulas, a learner; not a ranker itself.

A counterfactual model is linear and fitted by least squares to the debiased click rate C/n (see
`least_squares`). Its behavior feature x^b is the click rate by exposure, c/E. It could be C/n, as
the paper writes (`behavior=ips`), but that is the target itself: least squares then gives x^b the
weight 1 and every other feature 0, but for the ridge's trace, which is all that orders cold items.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ebrank.formula import Formula
from ebrank.rankers.base import Trial, param
from ebrank.rankers.bm25 import FIXED
from ebrank.rankers.least_squares import ClickRate, LeastSquares, Weight
from ebrank.rankers.model import ScoreModel


def exposure_concatenated(
    a: float, b: float, shown: float, clicks: float, exposure: float, w: float
) -> float:
    """Return a + w·x^b with x^b = c/E, or b where the item was never shown."""
    return a + w * (clicks / exposure if shown > 0.0 else b)


def ips_concatenated(a: float, b: float, shown: float, weighted_clicks: float, w: float) -> float:
    """Return a + w·x^b with x^b = C/n, or b where the item was never shown."""
    return a + w * (weighted_clicks / shown if shown > 0.0 else b)


CONCATENATED: dict[ClickRate, Formula] = {
    "exposure": Formula(exposure_concatenated, "w"),
    "ips": Formula(ips_concatenated, "w"),
}


@dataclass(frozen=True)
class LeastSquaresParameters:
    """Parameters of every ranker that fits the counterfactual loss."""

    weight: Weight = param(
        "one",
        "weight of a row in the loss: 1 (one) or the times it was shown (shown)",
        choices=("one", "shown"),
    )
    behavior: ClickRate = param(
        "exposure",
        "behavior feature x^b: c/E (exposure) or C/n (ips)",
        choices=("exposure", "ips"),
    )


@dataclass(frozen=True)
class CounterfactualParameters(LeastSquaresParameters):
    """Parameters of the rankers that run with and without the behavior feature."""

    features: Literal["none", "concate"] = param(
        "none",
        "leave behavior out (none) or make x^b one more feature (concate)",
        choices=("none", "concate"),
    )
    default: Literal["zero", "mean"] = param(
        "zero",
        "x^b of an item never shown: 0 (zero) or the mean of those shown (mean)",
        choices=("zero", "mean"),
    )


@dataclass
class CounterfactualLearner:
    """Refits the least squares at every update; serves what it learned, without exploring.

    Attributes:
        behavior_weight: w_b of the last model; 0 if x^b is left out.
    """

    parameters: CounterfactualParameters
    trial: Trial
    squares: LeastSquares = field(init=False)
    behavior_weight: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        """Start without rows."""
        self.squares = LeastSquares(self.trial, self.parameters.behavior, self.parameters.weight)

    def update(self) -> ScoreModel:
        """Return the model: a is w·x + w_0, b the x^b of an item never shown, p its weight w_b."""
        self.squares.see()
        concatenate = self.parameters.features == "concate"
        model = self.squares.solve(concatenate=concatenate)
        unseen = self.squares.mean_behavior if self.parameters.default == "mean" else 0.0
        self.behavior_weight = model.behavior
        score = FIXED
        if concatenate:
            score = CONCATENATED[self.parameters.behavior].bind(w=model.behavior)
        return ScoreModel(
            a=self.squares.scores(model),
            b=np.array([unseen]),
            serve=score,
            offline=score,
            weights=np.append(model.weights, model.behavior) if concatenate else model.weights,
        )
