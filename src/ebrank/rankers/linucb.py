"""LinUCB (Li, Chu, Langford and Schapire, A contextual-bandit approach to personalized news
article recommendation, 2010), with one linear model for all queries and clicks by position.

With z = (x, 1) the features of an item and an intercept, and sums over the impressions of items of
train queries, each weighted by the probability p that its rank was examined,

    A = λI + Σ p·z zᵀ,    θ = A⁻¹ Σ click·z,    score = θ·z + α·√(zᵀ A⁻¹ z)

which is Algorithm 1 of that paper, shared between items, with clicks/p as rewards of weight p. For
each item this needs its exposure E = Σ p and its clicks c. The model is refitted at every update,
and an item's own clicks count only through it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ebrank.arrays import read_only
from ebrank.formula import Formula
from ebrank.rankers.base import Ranker, Trial, TrialLearner, param
from ebrank.rankers.bm25 import FIXED
from ebrank.rankers.model import ScoreModel
from ebrank.threads import map_blocks
from ebrank.typing import Floats, Ints

BLOCK = 8192


def linear_bound(a: float, b: float, alpha: float) -> float:
    """Return θ·z + α·√(zᵀ A⁻¹ z), with a = θ·z and b the root."""
    return a + alpha * b


BOUND = Formula(linear_bound, "alpha")


@dataclass(frozen=True)
class LinUCB(Ranker):
    """Explores where the linear model knows little."""

    name = "linucb"
    help = "A linear model of clicks by position, plus its upper confidence bound."
    settings = ("none",)

    alpha: float = param(
        0.1,  # as good as 0 on MQ2008's validation queries
        "width of the confidence bound",
        at_least=0,
        grid=(0.0, 0.1, 0.3, 1.0, 3.0),
    )
    ridge: float = param(1.0, "λ, the impressions that no weight at all counts for", at_least=1e-6)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that refits at every update."""
        return LinUCBLearner(self, trial)


@dataclass
class LinUCBLearner:
    """Keeps Σ E·z zᵀ, and adds rows by their exposure since the last update."""

    ranker: LinUCB
    trial: Trial
    rows: Ints = field(init=False)
    counted: Floats = field(init=False)
    gram: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no rows."""
        data = self.trial.dataset
        self.rows = np.arange(data.n_rows)[data.rows_in("train")]
        self.counted = np.zeros(len(self.rows))
        self.gram = np.zeros((data.n_features + 1, data.n_features + 1))

    def update(self) -> ScoreModel:
        """Return the model: a is θ·z, b the root of zᵀ A⁻¹ z; offline there is no bonus."""
        from ebrank import linalg
        from ebrank.priors.learners.linear import linear_scores

        rewards = self._see()
        lower = linalg.cholesky(self.gram + self.ranker.ridge * np.eye(len(self.gram)))
        theta = linalg.solve_lower_transposed(lower, linalg.solve_lower(lower, rewards))
        return ScoreModel(
            a=linear_scores(self.trial.dataset.features, theta, self.trial.threads),
            b=self._widths(linalg.inverse_lower(lower)),
            serve=BOUND.bind(alpha=self.ranker.alpha),
            offline=FIXED,
            weights=theta[:-1],
        )

    def _see(self) -> Floats:
        """Update the Gram matrix; return Σ c·z."""
        from ebrank.rankers.kernels import least_squares as kernels

        features = read_only(self.trial.dataset.features)
        sums = self.trial.sums().rows(self.rows)
        change = sums.exposure - self.counted
        changed = np.flatnonzero(change)
        rows, change = self.rows[changed], change[changed]
        for part in map_blocks(
            lambda start, stop: kernels.gram_sum(features, rows, change, start, stop),
            total=len(rows),
            block=BLOCK,
            threads=self.trial.threads,
        ):
            self.gram += part
        self.counted = sums.exposure
        clicked = np.flatnonzero(sums.clicks)
        rows, clicks = self.rows[clicked], sums.clicks[clicked]
        one, nothing = np.ones(len(rows)), np.zeros(len(rows))
        rewards = np.zeros(len(self.gram))
        for part in map_blocks(
            lambda start, stop: kernels.side_sums(
                features, rows, one, nothing, clicks, start, stop
            ),
            total=len(rows),
            block=BLOCK,
            threads=self.trial.threads,
        ):
            rewards += part[1, :-1]
        return rewards

    def _widths(self, inverse: Floats) -> Floats:
        """Return √(zᵀ A⁻¹ z) of every row, from the inverse of A's Cholesky factor."""
        from ebrank.rankers.kernels import least_squares as kernels

        features = read_only(self.trial.dataset.features)
        widths = np.empty(len(features))
        map_blocks(
            lambda start, stop: kernels.write_widths(features, inverse, start, stop, widths),
            total=len(features),
            block=BLOCK,
            threads=self.trial.threads,
        )
        return widths
