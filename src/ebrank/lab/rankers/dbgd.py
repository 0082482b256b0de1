"""DBGD, dueling bandit gradient descent (Yue and Joachims 2009), and MGD (Schuth et al. 2016).

In every session a candidate w + δu, with u a random direction, duels with the logging model w: both
lists are interleaved, and if the candidate's items get more clicks, the learning model steps along
u.

MGD, multileave gradient descent, is DBGD with many candidates per session. The lists of all
candidates and of the logging model are multileaved into one. Every candidate with more clicks than
the logging model wins, and the learning model steps along the mean of the winners' directions (that
paper's MGD-M). `kernels/duels.py` runs the sessions of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.lab.rankers.base import Ranker, RunSessions, Trial, TrialLearner, param
from ebrank.lab.rankers.online import OnlineLearner, OnlineModel, OnlineParameters
from ebrank.typing import Bools, Floats

if TYPE_CHECKING:
    from ebrank.lab.sessions.linear import LoggingModel
    from ebrank.lab.sessions.session import Sessions


class Duels(NamedTuple):
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
        from ebrank.lab.rankers.kernels import duels

        n = linear.features.shape[1] + linear.concatenated
        return duels.gradient_sum(self, rates, n, start, stop)


@dataclass(frozen=True, eq=False, kw_only=True)
class DuelModel(OnlineModel):
    """A logging model that is compared with candidates around it in every session.

    Attributes:
        candidates: how many candidates a session compares.
        step: their distance δ from the logging model.
    """

    candidates: int
    step: float

    def run_sessions(self, sessions: Sessions) -> RunSessions:
        """Return a function that runs duels, and appends the winners to the lessons."""
        from ebrank.lab.rankers.kernels import duels

        n = len(sessions.ndcg)
        log = Duels(np.empty(n, np.uint64), np.zeros((n, self.candidates), np.bool_))
        self.lessons.append(log)
        return lambda start, stop: duels.run_sessions(
            sessions, self.linear, self.step, log, start, stop
        )


@dataclass(frozen=True)
class DBGD(OnlineParameters, Ranker):
    """One candidate per session, compared by team-draft interleaving."""

    name = "dbgd"
    help = "Dueling bandits: step towards a random variation when its items get more clicks."
    settings = ("none", "concate")

    step: float = param(1.0, "distance δ of the candidates from the logging model", at_least=0)

    candidates = 1

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner with random first weights."""
        wrap = partial(DuelModel, candidates=self.candidates, step=self.step)
        return OnlineLearner(self, trial, wrap)


@dataclass(frozen=True)
class MGD(DBGD):
    """Several candidates per session, compared by team-draft multileaving."""

    name = "mgd"
    help = "Multileave gradient descent: step towards the mean of the variations that win."

    candidates: int = param(9, "variations compared in each session", at_least=1, at_most=1000)
