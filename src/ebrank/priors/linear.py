"""A linear prior: α = exp(w·x + b), β fixed, trained on the marginal likelihood (eq:PriorlossM).

>>> import numpy as np
>>> from ebrank import BehaviorStats, LinearPrior
>>> features = np.array([[0.0], [1.0]] * 50, dtype=np.float32)
>>> stats = BehaviorStats.from_arrays(
...     {"shown": [20] * 100, "clicks": [2, 12] * 50,
...      "weighted_clicks": [2, 12] * 50, "exposure": [20] * 100})
>>> prior = LinearPrior(beta=5.0).fit(features, stats)
>>> alpha, beta = prior.predict(np.array([[0.0], [1.0]], dtype=np.float32))
>>> (alpha / (alpha + beta)).round(2)  # their click rates were 0.1 and 0.6
array([0.16, 0.62])
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Self, cast

import numpy as np
import numpy.typing as npt

from ebrank import behavior, equations
from ebrank.behavior import BehaviorStats, Estimator
from ebrank.errors import ParameterError
from ebrank.parameters import (
    Parameterized,
    require,
    require_flag,
    require_number,
    require_whole,
)
from ebrank.priors.base import BetaParameters
from ebrank.typing import Features, Floats

LARGEST_WEIGHT = 1e30  # a score that is a sum of larger ones could overflow


class LinearPrior(Parameterized):
    """α from a linear score of the features through exp, β the same for all items.

    Parameters:
        beta: β of every item's prior; the larger, the more the prior weighs against clicks.
        estimator: the evidence to learn from, `ips` (C of n) or `exposure` (c of E).
        l2: penalty l2/2 · |w|² on the weights, beside the mean loss.
        min_impressions: learn from rows shown more often than this.
        clamp: limit debiased clicks to the trials before learning.
        early_stopping: keep the weights with the lowest validation loss, if validation is given.
        patience: iterations without a lower validation loss before stopping.
        max_iterations: limit of quasi-Newton iterations.
        tolerance: stop when the whitened gradient is below; the mean loss is then within about
            tolerance² of its minimum.
        warm_start: begin at the last fit's weights.
        threads: cores to use, None for all; never changes the result.

    Attributes:
        weights_: learned weights, or None before `fit`.
        intercept_: learned intercept.
        iterations_: quasi-Newton iterations of the last fit.
        validation_loss_: mean validation loss of the kept weights, or None.
    """

    kind = "linear"

    def __init__(
        self,
        beta: float = 5.0,
        *,
        estimator: Estimator = "ips",
        l2: float = 1e-6,
        min_impressions: int = 0,
        clamp: bool = False,
        early_stopping: bool = True,
        patience: int = 5,
        max_iterations: int = 200,
        tolerance: float = 1e-3,
        warm_start: bool = False,
        threads: int | None = None,
    ) -> None:
        self.beta = beta
        self.estimator = estimator
        self.l2 = l2
        self.min_impressions = min_impressions
        self.clamp = clamp
        self.early_stopping = early_stopping
        self.patience = patience
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.warm_start = warm_start
        self.threads = threads
        self._check_params()
        self.weights_: Floats | None = None
        self.intercept_ = 0.0
        self.iterations_ = 0
        self.validation_loss_: float | None = None

    def fit(
        self,
        features: Features,
        behavior: BehaviorStats,
        *,
        validation: tuple[Features, BehaviorStats] | None = None,
    ) -> Self:
        """Minimize the loss over the rows that were shown; without any, stay at the start."""
        from ebrank.priors import training  # SciPy and Numba take a while to import

        matrix = _matrix(features)
        start = self._start(matrix.shape[1])
        train = training.objective(self, matrix, behavior)
        check = None
        if validation is not None and self.early_stopping:
            unseen = _matrix(validation[0])
            require(
                unseen.shape[1] == matrix.shape[1],
                f"validation has {unseen.shape[1]} features, training {matrix.shape[1]}",
            )
            check = training.objective(self, unseen, validation[1])
        fitted = training.minimize(self, train, check, start)
        self.weights_, self.intercept_ = fitted.theta[:-1], float(fitted.theta[-1])
        self.iterations_ = fitted.iterations
        self.validation_loss_ = fitted.validation_loss
        return self

    def predict(self, features: Features) -> BetaParameters:
        """Return α = exp(score) and β of each row; α = 1 before any fit."""
        matrix = _matrix(features)
        beta = np.full(len(matrix), float(self.beta))
        if self.weights_ is None:
            return BetaParameters(np.ones(len(matrix)), beta)
        from ebrank.priors import training

        scores = training.scores(matrix, self._start(matrix.shape[1], warm=True), self.threads)
        return BetaParameters(equations.prior_alpha(scores), beta)

    def loss(self, features: Features, behavior: BehaviorStats) -> float:
        """Return the mean marginal-likelihood loss of the shown rows, for reports and comparisons.

        It is that of the proper posterior Beta(c + α, max(E − c, 0) + β), whichever the estimator.
        """
        seen = behavior.shown > 0
        if not seen.any():
            raise ParameterError("no item has been shown: there is nothing to compute a loss from")
        alpha, beta = self.predict(features)
        losses = equations.marginal_likelihood_loss(
            behavior.clicks[seen].astype(np.float64),
            behavior.exposure[seen],
            alpha[seen],
            beta[seen],
        )
        return float(losses.mean())

    def to_state(self) -> dict[str, object]:
        """Return parameters and weights as plain values, for a model file."""
        weights = None if self.weights_ is None else self.weights_.tolist()
        return {"parameters": self.get_params(), "weights": weights, "intercept": self.intercept_}

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> Self:
        """Return the prior that `to_state` described; anything odd in it raises."""
        require(
            set(state) == {"parameters", "weights", "intercept"},
            f"a linear prior has parameters, weights and an intercept, not {sorted(state)}",
        )
        parameters, weights, intercept = (
            state[key] for key in ("parameters", "weights", "intercept")
        )
        require(isinstance(parameters, dict), f"no parameters: {parameters!r}")
        prior = cls().set_params(**cast("dict[str, object]", parameters))
        if weights is not None:
            require(isinstance(weights, list), f"no list of weights: {weights!r}")
            learned = [_weight(value) for value in (*cast("list[object]", weights), intercept)]
            prior.weights_, prior.intercept_ = np.array(learned[:-1], float), learned[-1]
        return prior

    def _start(self, n_features: int, warm: bool | None = None) -> Floats:
        """Return the learned θ, or zeros (α = 1) where there is none to start from."""
        if self.weights_ is None or not (self.warm_start if warm is None else warm):
            return np.zeros(n_features + 1)
        if len(self.weights_) != n_features:
            raise ParameterError(
                f"this prior was fitted on {len(self.weights_)} features, not {n_features}"
            )
        return np.append(self.weights_, self.intercept_)

    def _check_params(self) -> None:
        require_number(self, "beta", above=0)
        behavior.check_estimator(self.estimator)
        require_number(self, "l2", at_least=0)
        require_whole(self, "min_impressions", at_least=0)
        require_flag(self, "clamp")
        require_flag(self, "early_stopping")
        require_whole(self, "patience", at_least=1)
        require_whole(self, "max_iterations", at_least=1)
        require_number(self, "tolerance", above=0)
        require_flag(self, "warm_start")
        require_whole(self, "threads", at_least=1, optional=True)


def _weight(value: object) -> float:
    """Return a weight read from elsewhere, if it is one."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    good = number and abs(cast("float", value)) <= LARGEST_WEIGHT
    require(good, f"a weight must be a number up to ±{LARGEST_WEIGHT:g}, not {value!r}")
    return float(cast("float", value))


def _matrix(features: npt.ArrayLike) -> Features:
    """Return features as a row-major float32 matrix; one that is so already is not copied."""
    matrix = np.ascontiguousarray(features, dtype=np.float32)
    if matrix.ndim != 2:
        raise ParameterError(f"features must be a matrix (rows, features), not {matrix.ndim}-d")
    return matrix
