"""PRIOR (Gupta et al. 2020): predicts the behavior feature of items nobody has seen.

Two least-squares models are fitted to C/n on the rows shown: the predictor f(x) = v·x + v_0, and
the concatenated model w·x + w_b·x^b + w_0. An item is scored by

| situation | score |
|---|---|
| shown before | w·x + w_b·x^b + w_0 |
| never shown, beside items that were | w·x + w_b·f(x) + w_0: the predicted x^b stands in |
| Cold-NDCG: behavior is missing for all | f(x) |

In the second row the score must be comparable with the first, so it comes from the same model. In
the third there is nothing to compare with: the authors' code ranks by the predictor alone, which
was fitted to rank without behavior. The two orders differ a little, because w is the effect of x in
addition to x^b, not instead of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebrank.lab.rankers.base import ScoreModel
from ebrank.lab.rankers.counterfactual import CONCATENATED, LeastSquares, LeastSquaresRanker
from ebrank.model.formula import Formula


def predicted_behavior(b: float) -> float:
    """Return b, the predicted x^b, no matter what users do."""
    return b


PREDICTED = Formula(predicted_behavior).bind()


@dataclass(frozen=True)
class PRIOR(LeastSquaresRanker):
    """Fills in x^b where it is missing."""

    name = "prior"
    help = "CFTopK with the behavior feature, predicted from the others where it is missing."
    settings = ("concate",)

    def model(self, squares: LeastSquares) -> ScoreModel:
        """Return the concatenated model: a is w·x + w_0, b the predicted x^b, p its weight w_b."""
        predictor = squares.solve(concatenate=False)
        model = squares.solve(concatenate=True)
        score = CONCATENATED[self.behavior].bind(w=model.behavior)
        return ScoreModel(
            a=squares.scores(model),
            b=squares.scores(predictor),
            serve=score,
            offline=score,
            cold=PREDICTED,
            weights=np.append(model.weights, model.behavior),
        )
