"""A linear score w·x + b of the features, fitted by the family's loss plus ridge/2 · |w|².

The ridge is chosen from a grid by the loss of validation rows: the first fit looks at all of it, a
refit at the neighbors of the last choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ebrank.arrays import read_only
from ebrank.errors import ParameterError
from ebrank.parameters import param
from ebrank.priors.base import Learner, State
from ebrank.priors.rows import BLOCK, Rows, number
from ebrank.threads import map_blocks
from ebrank.typing import Bools, Features, Floats

if TYPE_CHECKING:
    from ebrank.priors.learners.minimization import Stopping

RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
FIRST_RIDGE = 1e-3
GAIN = 1e-4
"""How much another ridge must lower the mean validation loss to be tried."""
HELD_OUT = 5
"""Without validation rows, every fifth row is held out to choose the ridge."""


@dataclass(frozen=True)
class Linear(Learner):
    """Weights and an intercept."""

    name = "linear"
    help = "A weight for each feature and an intercept."

    ridge: float | None = param(
        None,
        "penalty on the weights; auto chooses it by the loss of validation rows",
        at_least=0,
        kind=float,
    )
    early_stopping: bool = param(True, "keep the weights with the lowest validation loss")
    patience: int = param(
        5, "iterations without a lower validation loss before a fit ends", at_least=1
    )
    max_iterations: int = param(200, "most quasi-Newton iterations", at_least=1)
    tolerance: float = param(
        1e-3,
        "largest whitened gradient of an optimum; the loss is then within its square",
        at_least=1e-12,
    )

    def fit(self, rows: Rows, validation: Rows | None, start: State | None) -> State:
        """Return weights, intercept and ridge; without included rows, those to start from."""
        theta, ridge = self._start(rows.features.shape[1], start)
        if rows.count == 0:
            return _state(theta, ridge)
        if validation is not None and validation.features.shape[1] != rows.features.shape[1]:
            raise ParameterError(
                f"validation has {validation.features.shape[1]} features, "
                f"training {rows.features.shape[1]}"
            )
        if validation is not None and validation.count == 0:
            validation = None
        if self.ridge is not None:
            return self._fitted(rows, validation, theta, ridge)
        if validation is not None:
            return self._chosen(rows, validation, theta, ridge, neighbors=start is not None)
        kept, held_out = _split(rows.included)
        if not kept.any() or not held_out.any():
            return self._fitted(rows, None, theta, ridge)
        chosen = self._chosen(
            rows.subset(kept), rows.subset(held_out), theta, ridge, neighbors=start is not None
        )
        return self._fitted(rows, None, _theta(chosen), number(chosen, "ridge"))

    def scores(self, state: State, features: Features, threads: int | None = None) -> Floats:
        """Return w·x + b of each row."""
        theta = _theta(state)
        if len(theta) != features.shape[1] + 1:
            raise ParameterError(
                f"this prior was fitted on {len(theta) - 1} features, not {features.shape[1]}"
            )
        return linear_scores(features, theta, threads)

    def check_state(self, state: State) -> None:
        """Raise unless there are weights, an intercept and a ridge."""
        if set(state) != {"weights", "intercept", "ridge"}:
            raise ParameterError(
                "a linear model has weights, intercept and ridge, "
                f"not {', '.join(sorted(state)) or 'nothing'}"
            )
        for name, values in state.items():
            if values.ndim != 1 or (name != "weights" and len(values) != 1):
                raise ParameterError(f"{name} cannot have the shape {values.shape}")

    def _chosen(
        self, rows: Rows, validation: Rows, theta: Floats, ridge: float, *, neighbors: bool
    ) -> State:
        """Return the fit under the ridge whose validation loss is lowest.

        Other ridges of the grid, or the neighbors of a ridge that was good before, are judged by
        where one Newton step takes the optimum. Only the best of them, if it promises a gain, is
        fitted in earnest.
        """
        from ebrank.priors.learners.minimization import (
            Fitted,
            curvature_at,
            mean_loss,
            minimize,
            moved,
        )

        watched = validation if self.early_stopping else None

        def fit(start: Floats, ridge: float) -> tuple[Fitted, float]:
            fitted = minimize(rows, watched, start, ridge, self._stopping)
            known = fitted.validation_loss
            return fitted, mean_loss(validation, fitted.theta) if known is None else known

        fitted, loss = fit(theta, ridge)
        if not neighbors:  # a first fit began far from its optimum, where the loss bends otherwise
            fitted = fitted._replace(curvature=curvature_at(rows, fitted.theta, ridge))
        guesses = {other: moved(fitted, ridge, other) for other in _others(ridge, neighbors)}
        losses = {other: mean_loss(validation, guess) for other, guess in guesses.items()}
        best = min(losses, key=lambda other: losses[other])
        if losses[best] < loss - GAIN:
            other, other_loss = fit(guesses[best], best)
            if other_loss < loss:
                fitted, ridge = other, best
        return _state(fitted.theta, ridge)

    def _fitted(self, rows: Rows, validation: Rows | None, theta: Floats, ridge: float) -> State:
        from ebrank.priors.learners.minimization import minimize  # SciPy takes a while to import

        watched = validation if self.early_stopping else None
        return _state(minimize(rows, watched, theta, ridge, self._stopping).theta, ridge)

    @property
    def _stopping(self) -> Stopping:
        from ebrank.priors.learners.minimization import Stopping

        return Stopping(self.patience, self.max_iterations, self.tolerance)

    def _start(self, n_features: int, start: State | None) -> tuple[Floats, float]:
        """Return the θ and the ridge to begin with."""
        given = FIRST_RIDGE if self.ridge is None else float(self.ridge)
        if start is None:
            return np.zeros(n_features + 1), given
        theta = _theta(start)
        if len(theta) != n_features + 1:
            raise ParameterError(
                f"this prior was fitted on {len(theta) - 1} features, not {n_features}"
            )
        return theta, number(start, "ridge") if self.ridge is None else given


def linear_scores(features: Features, theta: Floats, threads: int | None) -> Floats:
    """Return the linear score of every row; θ holds the weights and, last, the intercept."""
    from ebrank.priors.learners import linear_kernel

    scores = np.empty(len(features))
    matrix = read_only(features)
    map_blocks(
        lambda start, stop: linear_kernel.write_scores(matrix, theta, start, stop, scores),
        total=len(features),
        block=BLOCK,
        threads=threads,
    )
    if not np.all(np.isfinite(scores)):
        row = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise ParameterError(f"row {row} of the features holds a number that is not finite")
    return scores


def _state(theta: Floats, ridge: float) -> State:
    return {"weights": theta[:-1], "intercept": theta[-1:], "ridge": np.array([ridge])}


def _theta(state: State) -> Floats:
    return np.append(state["weights"], state["intercept"])


def _others(ridge: float, neighbors: bool) -> list[float]:
    """Return the other ridges of the grid, or only those beside a ridge."""
    others = [other for other in RIDGES if other != ridge]
    if not neighbors:
        return others
    return [
        *[other for other in others if other < ridge][-1:],
        *[o for o in others if o > ridge][:1],
    ]


def _split(included: Bools) -> tuple[Bools, Bools]:
    """Return which rows to keep, and every fifth to hold out."""
    number_of = np.cumsum(included) - 1
    held_out = included & (number_of % HELD_OUT == HELD_OUT - 1)
    return included & ~held_out, held_out
