"""Counterfactual rankers: CFTopK, CFEpsilon and CFRandomK learn the same linear model.

The model is fitted by least squares to the debiased click rate C/n. CFTopK sorts by it, and so
learns little about what it does not show; CFEpsilon adds noise to every score to explore; CFRandomK
shows lists in random order.

Its behavior feature x^b is the click rate by exposure, c/E. It could be C/n, as the paper writes
(`behavior=ips`), but that is the target itself: least squares then gives x^b the weight 1 and every
other feature 0, but for the ridge's trace, which is all that orders cold items.

Each item of the train partition that was shown has a row. Its target is y = C/n, which is unbiased
for the relevance of a list fixed in advance. The model is w·x + w_b·x^b + w_0, and minimizes

    Σ (y − w·x − w_b·x^b − w_0)² + λ (|w|² + w_b²)

with λ = 1e-6 times the mean diagonal of the Gram matrix Σ z zᵀ of z = (x, x^b, 1). Least squares
needs only sums of products. Features never change, so the x-block of the Gram matrix is kept, and
only new rows are added to it. The sums that clicks change, Σ x^b z and Σ y z, are computed again in
one pass over the features of the rows shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ebrank.evidence.estimators import ESTIMATORS, IPS
from ebrank.kernels.arrays import read_only
from ebrank.kernels.threads import sum_blocks
from ebrank.lab.rankers.base import FIXED, Ranker, Refit, ScoreModel, Trial, TrialLearner, param
from ebrank.lab.rankers.random import RANDOM, UNIFORM
from ebrank.model.formula import Formula
from ebrank.typing import Floats, Ints

ClickRate: TypeAlias = Literal["ips", "exposure"]
"""What x^b is: C/n or c/E."""

RIDGE = 1e-6
BLOCK = 8192


def concatenated(a: float, b: float, shown: float, hits: float, trials: float, w: float) -> float:
    """Return a + w·x^b with x^b = hits/trials, or b where the item was never shown."""
    return a + w * (hits / trials if shown > 0.0 else b)


def perturbed(score: float, draw: float, noise: float) -> float:
    """Return a score plus noise·U."""
    return score + noise * draw


CLICK_RATES: tuple[ClickRate, ...] = ("exposure", "ips")
CONCATENATED = {
    name: Formula(concatenated, "w", given=ESTIMATORS[name].quantities) for name in CLICK_RATES
}
NOISY = {
    name: Formula(
        perturbed,
        "w",
        "noise",
        given={"score": concatenated, "draw": UNIFORM, **ESTIMATORS[name].quantities},
    )
    for name in CLICK_RATES
}


@dataclass(frozen=True)
class LeastSquaresRanker(Ranker):
    """What every ranker shares that fits the counterfactual loss; each has its own `model`."""

    behavior: ClickRate = param(
        "exposure",
        "behavior feature x^b: c/E (exposure) or C/n (ips)",
        choices=("exposure", "ips"),
    )

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that refits at every update."""
        squares = LeastSquares(trial, self.behavior)

        def refitted() -> ScoreModel:
            squares.see()
            return self.model(squares)

        return Refit(refitted)

    def model(self, squares: LeastSquares) -> ScoreModel:
        """Return the model that follows from the sums of a trial."""
        raise NotImplementedError


@dataclass(frozen=True)
class CFTopK(LeastSquaresRanker):
    """Shows the items with the highest w·x + w_b·x^b, w fitted to C/n."""

    name = "cftopk"
    help = "Sort by a linear model fitted to debiased clicks; no exploration."
    settings = ("none", "concate")

    features: Literal["none", "concate"] = param(
        "none",
        "leave behavior out (none) or make x^b one more feature (concate)",
        choices=("none", "concate"),
    )
    default: Literal["zero", "mean"] = param(
        "zero",
        "x^b of an item never shown: 0 (zero) or the mean of those shown (mean)",
        choices=("zero", "mean"),
    )

    def model(self, squares: LeastSquares) -> ScoreModel:
        """Return the model: a is w·x + w_0, b the x^b of an item never shown, p its weight w_b."""
        concatenate = self.features == "concate"
        linear = squares.solve(concatenate=concatenate)
        unseen = squares.mean_behavior if self.default == "mean" else 0.0
        score = CONCATENATED[self.behavior].bind(w=linear.behavior) if concatenate else FIXED
        model = ScoreModel(
            a=squares.scores(linear),
            b=np.array([unseen]),
            serve=score,
            offline=score,
            weights=np.append(linear.weights, linear.behavior) if concatenate else linear.weights,
        )
        return self.served(model, linear.behavior)

    def served(self, model: ScoreModel, behavior_weight: float) -> ScoreModel:
        """Return a learned model as it is served; w_b is 0 if x^b is left out."""
        return model


@dataclass(frozen=True)
class CFEpsilon(CFTopK):
    """Shows the items with the highest w·x + w_b·x^b + noise·U, U uniform on [0, 1)."""

    name = "cfepsilon"
    help = "CFTopK's model, with uniform noise added to each score in each session."

    noise: float = param(1.0, "largest noise added to a score", at_least=0)

    def served(self, model: ScoreModel, behavior_weight: float) -> ScoreModel:
        """Return the model with noise in its lists; it is measured without."""
        noisy = NOISY[self.behavior].bind(w=behavior_weight, noise=self.noise)
        return replace(model, serve=noisy, noisy=True)


@dataclass(frozen=True)
class CFRandomK(CFTopK):
    """Shows random lists; what it learned from them is measured offline only."""

    name = "cfrandomk"
    help = "Show random lists, and learn CFTopK's model from them."

    def served(self, model: ScoreModel, behavior_weight: float) -> ScoreModel:
        """Return the model with lists sorted by a uniform draw per item and session."""
        return replace(model, serve=RANDOM, noisy=True)


# --- least squares -------------------------------------------------------------------------------


class Products:
    """Sums of products over the train queries' rows, each with a weight ω.

    Attributes:
        rows: of the dataset.
        gram: the lower triangle of Σ ω (x, 1)(x, 1)ᵀ.
    """

    def __init__(self, trial: Trial) -> None:
        data = trial.dataset
        self._features, self._threads = read_only(data.features), trial.threads
        self.rows: Ints = np.arange(data.n_rows)[data.rows_in("train")]
        self._weights = np.zeros(len(self.rows))
        self.gram = np.zeros((data.n_features + 1, data.n_features + 1))

    def weigh(self, weights: Floats) -> None:
        """Give each row another ω: those whose ω changed are added by the difference."""
        from ebrank.lab.rankers.kernels import least_squares as kernels

        change = weights - self._weights
        changed = np.flatnonzero(change)
        rows, change = self.rows[changed], change[changed]
        self.gram = sum_blocks(
            lambda start, stop: kernels.gram_sum(self._features, rows, change, start, stop),
            self.gram,
            total=len(rows),
            block=BLOCK,
            threads=self._threads,
        )
        self._weights = weights

    def side_sums(self, weights: Floats, behavior: Floats, target: Floats) -> Floats:
        """Return Σ ω x^b (x, 1, x^b) and Σ ω y (x, 1, x^b) over rows with ω ≠ 0, as two rows."""
        from ebrank.lab.rankers.kernels import least_squares as kernels

        seen = np.flatnonzero(weights)
        columns = self.rows[seen], weights[seen], behavior[seen], target[seen]
        return sum_blocks(
            lambda start, stop: kernels.side_sums(self._features, *columns, start, stop),
            np.zeros((2, len(self.gram) + 1)),
            total=len(seen),
            block=BLOCK,
            threads=self._threads,
        )


class LinearModel(NamedTuple):
    """A linear model: weights of x, weight of x^b (0 if x^b is left out), intercept."""

    weights: Floats
    behavior: float
    intercept: float


class LeastSquares(Products):
    """Sums of products over the rows shown so far, and the models that follow from them."""

    def __init__(self, trial: Trial, behavior: ClickRate) -> None:
        super().__init__(trial)
        self._trial = trial
        self._behavior = behavior
        self.sides = np.zeros((2, trial.dataset.n_features + 2))

    def see(self) -> None:
        """Update the sums with what users have done.

        The rows of `sides` are Σ ω x^b (x, 1, x^b) and Σ ω y (x, 1, x^b).
        """
        sums = self._trial.sums().rows(self.rows)
        weights = (sums.shown > 0.0).astype(np.float64)
        self.weigh(weights)
        behavior, target = ESTIMATORS[self._behavior].rate(sums), IPS.rate(sums)
        self.sides = self.side_sums(weights, behavior, target)

    def solve(self, *, concatenate: bool) -> LinearModel:
        """Return the best model of x, with x^b if `concatenate`; zeros if nothing was shown.

        Centered columns take the intercept out of the system and make it better conditioned.
        """
        from ebrank.kernels import linalg

        n = len(self.gram) - 1
        total = self.gram[n, n]
        if total == 0.0:
            return LinearModel(np.zeros(n), 0.0, 0.0)
        columns = [*range(n), n + 1] if concatenate else list(range(n))
        products = np.zeros((n + 2, n + 2))  # the lower triangle of Σ ω z zᵀ with z = (x, 1, x^b)
        products[: n + 1, : n + 1], products[n + 1] = self.gram, self.sides[0]
        products = products[np.ix_(columns, columns)]
        ridge = RIDGE * (np.trace(products) + total) / (len(columns) + 1)
        means = np.append(self.gram[n], self.sides[0, n])[columns] / total
        target = self.sides[1, n] / total
        lower = linalg.cholesky(
            products - total * np.multiply.outer(means, means) + ridge * np.eye(len(columns))
        )
        right = self.sides[1, columns] - total * target * means
        theta = linalg.solve_lower_transposed(lower, linalg.solve_lower(lower, right))
        intercept = float(target - (means * theta).sum())
        return LinearModel(theta[:n], float(theta[n]) if concatenate else 0.0, intercept)

    @property
    def mean_behavior(self) -> float:
        """Mean x^b of the rows shown, weighted by ω; 0 if there are none."""
        n = len(self.gram) - 1
        return float(self.sides[0, n] / max(self.gram[n, n], 1.0))

    def scores(self, model: LinearModel) -> Floats:
        """Return w·x + w_0 of every row of the dataset."""
        from ebrank.model.prior.learners.linear import linear_scores

        theta = np.append(model.weights, model.intercept)
        return linear_scores(self._trial.dataset.features, theta, self._trial.threads)
