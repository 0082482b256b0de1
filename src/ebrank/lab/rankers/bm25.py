"""Rankers whose scores never change: BM25, whose lists users saw before, and the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ebrank.lab.rankers.base import Ranker, Refit, Trial, TrialLearner, fixed_model


@dataclass(frozen=True)
class BM25(Ranker):
    """Sorts by the BM25 feature."""

    name = "bm25"
    help = "Sort by the BM25 feature; the lists of the initial log are made by it."
    settings = ("none",)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that never learns."""
        return Refit(partial(fixed_model, trial.dataset.baseline.astype(np.float64)))


@dataclass(frozen=True)
class Oracle(Ranker):
    """Knows what no ranker can know."""

    name = "oracle"
    help = "Sort by the true relevance: the ceiling for the candidates that have entered."
    settings = ("none",)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that has nothing left to learn."""
        return Refit(partial(fixed_model, trial.relevance))
