"""CFRandomK: learns as CFTopK does, from lists in random order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ebrank.rankers.base import Ranker, Trial, TrialLearner
from ebrank.rankers.counterfactual import CounterfactualLearner, CounterfactualParameters
from ebrank.rankers.model import ScoreModel
from ebrank.rankers.random import RANDOM


@dataclass(frozen=True)
class CFRandomK(CounterfactualParameters, Ranker):
    """Shows random lists; what it learned from them is measured offline only."""

    name = "cfrandomk"
    help = "Show random lists, and learn CFTopK's model from them."
    settings = ("none", "concate")

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that refits at every update."""
        return RandomKLearner(CounterfactualLearner(self, trial))


@dataclass
class RandomKLearner:
    """Learns as CFTopK does, serves at random."""

    greedy: CounterfactualLearner

    def update(self) -> ScoreModel:
        """Return CFTopK's model; lists are sorted by a uniform draw per item and session."""
        return replace(self.greedy.update(), serve=RANDOM, noisy=True)
