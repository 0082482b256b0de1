"""The counterfactual loss as least squares, kept up to date from one model update to the next.

Each item of the train partition that was shown has a row. Its target is y = C/n, which is unbiased
for the relevance of a list fixed in advance. The model is w·x + w_b·x^b + w_0, and minimizes

    Σ ω (y − w·x − w_b·x^b − w_0)² + λ (|w|² + w_b²)

with ω = 1 or ω = n, and λ = 1e-6 times the mean diagonal of the Gram matrix Σ ω z zᵀ of
z = (x, x^b, 1). Least squares needs only sums of products. Features never change, so the x-block of
the Gram matrix is kept, and only rows whose weight ω changed are added to it, by the difference:
new rows if ω = 1, rows shown since if ω = n. The sums that clicks change, Σ ω x^b z and Σ ω y z,
are computed again in one pass over the features of the rows shown.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ebrank.arrays import read_only
from ebrank.evidence import Sums
from ebrank.evidence.estimators import ESTIMATORS, IPS
from ebrank.rankers.base import Trial
from ebrank.threads import map_blocks
from ebrank.typing import Floats, Ints

Weight: TypeAlias = Literal["one", "shown"]
ClickRate: TypeAlias = Literal["ips", "exposure"]
"""What x^b is: C/n or c/E."""

RIDGE = 1e-6
BLOCK = 8192


class Linear(NamedTuple):
    """A linear model: weights of x, weight of x^b (0 if x^b is left out), intercept."""

    weights: Floats
    behavior: float
    intercept: float


class LeastSquares:
    """Sums of products over the rows shown so far, and the models that follow from them."""

    def __init__(self, trial: Trial, behavior: ClickRate, weight: Weight) -> None:
        data = trial.dataset
        self._features = read_only(data.features)
        self._trial = trial
        self._threads = trial.threads
        self._behavior = behavior
        self._weight = weight
        self._rows: Ints = np.arange(data.n_rows)[data.rows_in("train")]
        self._counted = np.zeros(len(self._rows))  # the ω of each row that is in `gram`
        self.gram = np.zeros((data.n_features + 1, data.n_features + 1))
        self.sides = np.zeros((2, data.n_features + 2))

    def see(self) -> None:
        """Update the sums with what users have done.

        `gram` is the lower triangle of Σ ω (x, 1)(x, 1)ᵀ; the rows of `sides` are
        Σ ω x^b (x, 1, x^b) and Σ ω y (x, 1, x^b).
        """
        sums = self._trial.sums().rows(self._rows)
        weights = sums.shown if self._weight == "shown" else (sums.shown > 0.0).astype(np.float64)
        self._add_to_gram(weights)
        self._sum_sides(weights, sums)

    def solve(self, *, concatenate: bool) -> Linear:
        """Return the best model of x, with x^b if `concatenate`; zeros if nothing was shown.

        Centered columns take the intercept out of the system and make it better conditioned.
        """
        from ebrank import linalg

        n = len(self.gram) - 1
        total = self.gram[n, n]
        if total == 0.0:
            return Linear(np.zeros(n), 0.0, 0.0)
        columns = [*range(n), n + 1] if concatenate else list(range(n))
        products = self._products()[np.ix_(columns, columns)]
        ridge = RIDGE * (np.trace(products) + total) / (len(columns) + 1)
        means = np.append(self.gram[n], self.sides[0, n])[columns] / total
        target = self.sides[1, n] / total
        lower = linalg.cholesky(
            products - total * np.multiply.outer(means, means) + ridge * np.eye(len(columns))
        )
        right = self.sides[1, columns] - total * target * means
        theta = linalg.solve_lower_transposed(lower, linalg.solve_lower(lower, right))
        intercept = float(target - (means * theta).sum())
        return Linear(theta[:n], float(theta[n]) if concatenate else 0.0, intercept)

    @property
    def mean_behavior(self) -> float:
        """Mean x^b of the rows shown, weighted by ω; 0 if there are none."""
        n = len(self.gram) - 1
        return float(self.sides[0, n] / max(self.gram[n, n], 1.0))

    def scores(self, model: Linear) -> Floats:
        """Return w·x + w_0 of every row of the dataset."""
        from ebrank.priors.learners.linear import linear_scores

        theta = np.append(model.weights, model.intercept)
        return linear_scores(self._features, theta, self._threads)

    def _add_to_gram(self, weights: Floats) -> None:
        """Add the rows whose weight changed, by the difference."""
        from ebrank.rankers.kernels import least_squares as kernels

        change = weights - self._counted
        changed = np.flatnonzero(change)
        rows, change = self._rows[changed], change[changed]
        for part in map_blocks(
            lambda start, stop: kernels.gram_sum(self._features, rows, change, start, stop),
            total=len(rows),
            block=BLOCK,
            threads=self._threads,
        ):
            self.gram += part
        self._counted = weights

    def _sum_sides(self, weights: Floats, sums: Sums) -> None:
        """Compute the sums that clicks change over all rows shown."""
        from ebrank.rankers.kernels import least_squares as kernels

        seen = np.flatnonzero(weights)
        rows, weights = self._rows[seen], weights[seen]
        behavior = ESTIMATORS[self._behavior].rate(sums.rows(seen))
        target = IPS.rate(sums.rows(seen))
        self.sides = np.zeros_like(self.sides)
        for part in map_blocks(
            lambda start, stop: kernels.side_sums(
                self._features, rows, weights, behavior, target, start, stop
            ),
            total=len(rows),
            block=BLOCK,
            threads=self._threads,
        ):
            self.sides += part

    def _products(self) -> Floats:
        """Return the lower triangle of Σ ω z zᵀ with z = (x, 1, x^b)."""
        n = len(self.gram)
        products = np.zeros((n + 1, n + 1))
        products[:n, :n] = self.gram
        products[n] = self.sides[0]
        return products
