"""MGD, multileave gradient descent (Schuth et al. 2016): DBGD with many candidates per session.

The lists of all candidates and of the logging model are multileaved into one. Every candidate with
more clicks than the logging model wins, and the learning model steps along the mean of the winners'
directions (the paper's MGD-M).
"""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.rankers.base import Trial, TrialLearner, param
from ebrank.rankers.dbgd import DBGD, duel_learner


@dataclass(frozen=True)
class MGD(DBGD):
    """Several candidates per session, compared by team-draft multileaving."""

    name = "mgd"
    help = "Multileave gradient descent: step towards the mean of the variations that win."
    settings = ("none", "concate")

    candidates: int = param(9, "variations compared in each session", at_least=1, at_most=1000)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner with random first weights."""
        return duel_learner(self, trial, self.candidates)
