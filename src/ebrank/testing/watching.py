"""A ranker that lets itself be watched: its trial, and every model that it learns."""

from __future__ import annotations

from typing import cast

from ebrank.rankers.base import Ranker, Trial, TrialLearner
from ebrank.rankers.model import ScoreModel


class Watched:
    """Stands in for a ranker; `trial` and `models` are those of the last run."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker
        self.trial: Trial | None = None
        self.models: list[ScoreModel] = []
        self._learner: TrialLearner | None = None

    def learner(self, trial: Trial) -> TrialLearner:
        """Return what learns in a trial, and remembers what it learned."""
        self.trial, self.models, self._learner = trial, [], self.ranker.learner(trial)
        return self

    def update(self) -> ScoreModel:
        """Learn."""
        assert self._learner is not None
        self.models.append(self._learner.update())
        return self.models[-1]

    def __getattr__(self, name: str) -> object:
        return getattr(self.ranker, name)


def watched(ranker: Ranker) -> tuple[Ranker, Watched]:
    """Return a ranker to simulate, and the same to look at afterwards."""
    watch = Watched(ranker)
    return cast(Ranker, watch), watch
