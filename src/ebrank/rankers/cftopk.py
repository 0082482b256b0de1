"""CFTopK: sorts by a counterfactual model, and so learns little about what it does not show."""

from __future__ import annotations

from dataclasses import dataclass

from ebrank.rankers.base import Ranker, Trial, TrialLearner
from ebrank.rankers.counterfactual import CounterfactualLearner, CounterfactualParameters


@dataclass(frozen=True)
class CFTopK(CounterfactualParameters, Ranker):
    """Shows the items with the highest w·x + w_b·x^b, w fitted to C/n."""

    name = "cftopk"
    help = "Sort by a linear model fitted to debiased clicks; no exploration."
    settings = ("none", "concate")

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that refits at every update."""
        return CounterfactualLearner(self, trial)
