"""PDGD, pairwise differentiable gradient descent (Oosterhuis and de Rijke 2018).

Lists are drawn from the softmax of the logging model's scores. Clicked items are preferred to items
passed over, and the gradient of these preferences is weighted so that the ranker's own order does
not bias it: `kernels/pairwise.py` has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebrank.rankers.base import Ranker, Trial, TrialLearner, param
from ebrank.rankers.online import LoggingModel, OnlineLearner, OnlineModel, OnlineParameters
from ebrank.typing import Bools, Floats


@dataclass(frozen=True, eq=False)
class Pairs:
    """What preferences between the items of lists taught; one row for each session.

    Attributes:
        rows: the items shown.
        weights: factor of each item's ∇f in the session's gradient.
        behavior: each item's x^b when the list was made.
        stepped: whether the session has a pair.
    """

    rows: npt.NDArray[np.int64]
    weights: Floats
    behavior: Floats
    stepped: Bools

    def gradient_sum(self, linear: LoggingModel, rates: Floats, start: int, stop: int) -> Floats:
        """Return Σ rate·gradient over the sessions start..stop."""
        from ebrank.rankers.kernels import pairwise

        n = linear.features.shape[1] + linear.concatenated
        return pairwise.gradient_sum(
            linear.features, self.rows, self.weights, self.behavior, rates, n, start, stop
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PairwiseModel(OnlineModel):
    """A logging model whose lists are drawn from the softmax of its scores."""


@dataclass(frozen=True)
class PDGD(OnlineParameters, Ranker):
    """Draws its lists, learns from pairs."""

    name = "pdgd"
    help = "Pairwise differentiable gradient descent: draw lists, prefer clicked to passed over."
    settings = ("none", "concate")

    decay: float = param(
        0.9999, "factor of the rate from one step to the next", at_least=0, at_most=1
    )

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner with random first weights."""
        return OnlineLearner(self, self.decay, trial, PairwiseModel)
