"""Oracle: sorts by the true relevance. The ceiling."""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.rankers.base import Ranker, Trial, TrialLearner
from ebrank.rankers.bm25 import FixedLearner


@dataclass(frozen=True)
class Oracle(Ranker):
    """Knows what no ranker can know."""

    name = "oracle"
    help = "Sort by the true relevance: the ceiling for the candidates that have entered."
    settings = ("none",)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that has nothing left to learn."""
        return FixedLearner(trial.relevance)
