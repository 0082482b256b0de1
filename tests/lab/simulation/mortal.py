"""Rankers of one's own: one that works, one that fails, one that takes its process with it."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from ebrank.lab.rankers.base import Ranker, Refit, ScoreModel, Trial, TrialLearner, param
from ebrank.model.formula import Formula

SCORE = Formula(lambda clicks, a: clicks + a)


@dataclass(frozen=True)
class Plain(Ranker):
    """Sorts by clicks."""

    name = "plain"
    help = "Sort by clicks."
    settings = ("non-concate",)

    rate: float = param(0.5, "what every item begins with", at_least=0)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that learns nothing."""
        numbers = np.full(trial.dataset.n_rows, self.rate)
        return Refit(lambda: ScoreModel(numbers, np.zeros(1), SCORE.bind(), SCORE.bind()))


@dataclass(frozen=True)
class Failing(Ranker):
    """Fails as soon as it is to learn."""

    name = "failing"
    help = "Fail."
    settings = ("non-concate",)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return nothing."""
        raise ValueError("no such luck")


@dataclass(frozen=True)
class Deadly(Ranker):
    """Ends the process that it runs in, as one does that takes too much memory."""

    name = "deadly"
    help = "End the process."
    settings = ("non-concate",)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return nothing."""
        os._exit(1)
