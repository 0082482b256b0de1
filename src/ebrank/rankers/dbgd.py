"""DBGD, dueling bandit gradient descent (Yue and Joachims 2009).

In every session a candidate w + δu, with u a random direction, duels with the logging model w: both
lists are interleaved, and if the candidate's items get more clicks, the learning model steps along
u.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from ebrank.rankers.base import Ranker, Trial, TrialLearner, param
from ebrank.rankers.online import LoggingModel, OnlineLearner, OnlineModel, OnlineParameters
from ebrank.typing import Bools, Floats


@dataclass(frozen=True, eq=False)
class Duels:
    """What sessions of duels taught: which candidates won. Keys give the directions again.

    Attributes:
        keys: the random key of each session.
        wins: whether each candidate (columns) beat the logging model in each session (rows).
    """

    keys: npt.NDArray[np.uint64]
    wins: Bools

    @property
    def stepped(self) -> Bools:
        """Whether a candidate won."""
        return np.asarray(self.wins.any(axis=1))

    def gradient_sum(self, linear: LoggingModel, rates: Floats, start: int, stop: int) -> Floats:
        """Return Σ rate·(mean of the winners' directions) over the sessions start..stop."""
        from ebrank.rankers.kernels import directions

        n = linear.features.shape[1] + linear.concatenated
        return directions.gradient_sum(self.keys, self.wins, rates, n, start, stop)


@dataclass(frozen=True, eq=False, kw_only=True)
class DuelModel(OnlineModel):
    """A logging model that is compared with candidates around it in every session.

    Attributes:
        candidates: how many candidates a session compares.
        step: their distance δ from the logging model.
        disputed_only: whether clicks on items that all rankers agree on count for none.
    """

    candidates: int
    step: float
    disputed_only: bool


@dataclass(frozen=True)
class DBGD(OnlineParameters, Ranker):
    """One candidate per session, compared by team-draft interleaving."""

    name = "dbgd"
    help = "Dueling bandits: step towards a random variation when its items get more clicks."
    settings = ("none", "concate")

    decay: float = param(
        0.99999, "factor of the rate from one step to the next", at_least=0, at_most=1
    )
    step: float = param(1.0, "distance δ of the candidates from the logging model", at_least=0)
    credit: Literal["disputed", "all"] = param(
        "disputed",
        "count clicks below the top items all rankers agree on, or all clicks",
        choices=("disputed", "all"),
    )

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner with random first weights."""
        return duel_learner(self, trial, candidates=1)


def duel_learner(ranker: DBGD, trial: Trial, candidates: int) -> OnlineLearner:
    """Return a learner that compares this many candidates in each session."""
    wrap = partial(
        DuelModel,
        candidates=candidates,
        step=float(ranker.step),
        disputed_only=ranker.credit == "disputed",
    )
    return OnlineLearner(ranker, ranker.decay, trial, wrap)
