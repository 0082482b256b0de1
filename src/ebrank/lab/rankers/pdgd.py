"""PDGD, pairwise differentiable gradient descent (Oosterhuis and de Rijke 2018).

Lists are drawn from the softmax of the logging model's scores. Clicked items are preferred to items
passed over, and the gradient of these preferences is weighted so that the ranker's own order does
not bias it: `kernels/pairwise.py` has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.lab.rankers.base import Ranker, RunSessions, Trial, TrialLearner, param
from ebrank.lab.rankers.online import OnlineLearner, OnlineModel, OnlineParameters
from ebrank.typing import Bools, Floats

if TYPE_CHECKING:
    from ebrank.lab.sessions.linear import LoggingModel
    from ebrank.lab.sessions.session import Sessions


class Pairs(NamedTuple):
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
        from ebrank.lab.rankers.kernels import pairwise

        n = linear.features.shape[1] + linear.concatenated
        return pairwise.gradient_sum(linear.features, self, rates, n, start, stop)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairwiseModel(OnlineModel):
    """A logging model whose lists are drawn from the softmax of its scores."""

    def run_sessions(self, sessions: Sessions) -> RunSessions:
        """Return a function that draws lists, and appends the preferences to the lessons."""
        from ebrank.lab.rankers.kernels import pairwise

        shape = len(sessions.ndcg), len(sessions.world.discounts)
        log = Pairs(
            rows=np.zeros(shape, np.int64),
            weights=np.zeros(shape),
            behavior=np.zeros(shape),
            stepped=np.zeros(shape[0], np.bool_),
        )
        self.lessons.append(log)
        return lambda start, stop: pairwise.run_sessions(sessions, self.linear, log, start, stop)


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
        return OnlineLearner(self, trial, PairwiseModel)
