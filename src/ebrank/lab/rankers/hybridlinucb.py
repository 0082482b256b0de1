"""Hybrid LinUCB, Algorithm 2 of Li, Chu, Langford and Schapire (A contextual-bandit approach to
personalized news article recommendation, WWW 2010), with clicks by position.

The reward of an item is β·z + θ, with weights β that all items share, z = (x, 1) its features and
an intercept, and a term θ of its own: the features of an arm, in that paper, are the constant 1. An
impression counts with the probability p that its rank was examined, and its reward is click/p. So
an item needs only its exposure E and its clicks c, and the paper's matrices for its own term are
the numbers A_a = λ' + E, B_a = E·zᵀ and b_a = c. Written out, the algorithm is

    A₀ = λI + Σ w·z zᵀ,    β = A₀⁻¹ Σ w·(c/E)·z,    w = λ'E/(λ' + E),
    score = (c + λ'·β·z)/(λ' + E) + α·√(1/(λ' + E) + (λ'/(λ' + E))²·zᵀ A₀⁻¹ z)

The paper has λ = λ' = 1. The sums are over items of train queries, and A₀ and β change at every
update; c and E of an item, of whatever query, count at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebrank.kernels.arrays import read_only
from ebrank.kernels.threads import map_blocks
from ebrank.lab.rankers.base import Ranker, ScoreModel, Trial, TrialLearner, param
from ebrank.lab.rankers.counterfactual import BLOCK, Products
from ebrank.model.formula import Formula
from ebrank.typing import Floats


def hybrid_mean(a: float, clicks: float, exposure: float, item_ridge: float) -> float:
    """Return β·z + θ = (c + λ'·a)/(λ' + E), with a = β·z."""
    return (clicks + item_ridge * a) / (item_ridge + exposure)


def hybrid_bound(mean: float, b: float, exposure: float, alpha: float, item_ridge: float) -> float:
    """Return the mean plus α·√(1/(λ' + E) + (λ'·b/(λ' + E))²), with b² = zᵀ A₀⁻¹ z."""
    own = item_ridge + exposure
    shared = item_ridge * b / own
    return mean + alpha * np.sqrt(1.0 / own + shared * shared)  # type: ignore[no-any-return]


BOUND = Formula(hybrid_bound, "alpha", "item_ridge", given={"mean": hybrid_mean})
MEAN = Formula(hybrid_mean, "item_ridge")


@dataclass(frozen=True)
class HybridLinUCB(Ranker):
    """Explores where neither the linear model nor an item's own clicks say much."""

    name = "hybridlinucb"
    help = "Shared linear weights and a term per item, plus their upper confidence bound."
    settings = ("non-concate",)

    alpha: float = param(
        0.1, "α, width of the confidence bound", at_least=0, grid=(0.0, 0.05, 0.1, 0.2, 0.4)
    )
    item_ridge: float = param(
        3.0,
        "λ', the exposure that the linear model counts for beside an item's own clicks",
        at_least=1e-6,
        grid=(1.0, 3.0, 10.0, 30.0),
    )
    ridge: float = param(
        1.0, "λ, the exposure that weights of 0 count for", at_least=1e-6, grid=(0.1, 1.0, 10.0)
    )

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that refits at every update."""
        return HybridLearner(self, trial, Products(trial))


@dataclass
class HybridLearner:
    """Keeps Σ w·z zᵀ, and adds rows by what w has changed since the last update."""

    ranker: HybridLinUCB
    trial: Trial
    products: Products

    def update(self) -> ScoreModel:
        """Return the model: a is β·z, b the root of zᵀ A₀⁻¹ z; offline there is no bonus."""
        from ebrank.kernels import linalg
        from ebrank.model.prior.learners.linear import linear_scores

        rewards, gram = self._see(), self.products.gram
        units = np.eye(len(gram))
        lower = linalg.cholesky(gram + self.ranker.ridge * units)
        beta = linalg.solve_lower_transposed(lower, linalg.solve_lower(lower, rewards))
        inverse = np.column_stack([linalg.solve_lower(lower, unit) for unit in units])
        return ScoreModel(
            a=linear_scores(self.trial.dataset.features, beta, self.trial.threads),
            b=self._widths(inverse),
            serve=BOUND.bind(alpha=self.ranker.alpha, item_ridge=self.ranker.item_ridge),
            offline=MEAN.bind(item_ridge=self.ranker.item_ridge),
            weights=beta[:-1],
        )

    def _see(self) -> Floats:
        """Update the Gram matrix; return Σ w·(c/E)·z."""
        sums = self.trial.sums().rows(self.products.rows)
        kept = self.ranker.item_ridge / (self.ranker.item_ridge + sums.exposure)  # w/E
        self.products.weigh(kept * sums.exposure)
        clicked = (sums.clicks != 0.0).astype(np.float64)
        rewards = self.products.side_sums(clicked, np.zeros(len(kept)), kept * sums.clicks)
        return rewards[1, :-1]

    def _widths(self, inverse: Floats) -> Floats:
        """Return √(zᵀ A₀⁻¹ z) of every row, from the inverse of A₀'s Cholesky factor."""
        from ebrank.lab.rankers.kernels import least_squares as kernels

        features = read_only(self.trial.dataset.features)
        widths = np.empty(len(features))
        map_blocks(
            lambda start, stop: kernels.write_widths(features, inverse, start, stop, widths),
            total=len(features),
            block=BLOCK,
            threads=self.trial.threads,
        )
        return widths
