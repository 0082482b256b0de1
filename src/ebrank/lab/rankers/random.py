"""Random: every order is equally likely. The floor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebrank.lab.rankers.base import FIXED, Ranker, Refit, ScoreModel, Trial, TrialLearner
from ebrank.model.formula import Formula

UNIFORM = "ebrank.kernels.streams:uniform"
"""A new draw for every item in every session; compiled, so it is imported when first used."""
RANDOM = Formula(UNIFORM).bind()


@dataclass(frozen=True)
class Random(Ranker):
    """Shuffles."""

    name = "random"
    help = "Shuffle the candidates: the floor."
    settings = ("none",)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that never learns. Offline, all scores are equal: tie keys shuffle."""
        nothing = np.zeros(trial.dataset.n_rows)
        model = ScoreModel(a=nothing, b=nothing[:1], serve=RANDOM, offline=FIXED, noisy=True)
        return Refit(lambda: model)
