"""A linear score w·x + b of the features, fitted by the family's loss plus ridge/2 · |w|².

The loss of validation rows chooses the ridge. A fit starts at the ridge of the last one, the first
at 1e-3, and moves along a grid as long as that clearly lowers the loss: by more than four standard
errors of the mean difference between rows. Validation rows are few, and a choice among equals would
only follow their noise. With a given ridge, validation rows decide when to stop instead.
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
    from ebrank.priors.learners.minimization import Fitted

RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FIRST_RIDGE = 1e-3
SURE = 4.0
"""By how many standard errors a step along the grid must lower the validation loss: more than the
usual two, because rows of one query are similar and tell less than independent ones."""
FEWEST = 30
"""Fewer validation rows than this never change the ridge."""
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
    early_stopping: bool = param(
        True, "with a given ridge, keep the weights with the lowest validation loss on the way"
    )
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
        """Return weights, intercept and ridge; without included rows, the initial ones.

        Without validation rows, a first fit holds some rows out to choose the ridge and then learns
        from all; a later one keeps its ridge.
        """
        n_features = rows.features.shape[1]
        if validation is not None and validation.features.shape[1] != n_features:
            raise ParameterError(
                f"validation has {validation.features.shape[1]} features, training has {n_features}"
            )
        theta, ridge = self._start(n_features, start)
        if rows.count == 0:
            return _state(theta, ridge)
        if validation is not None and validation.count == 0:
            validation = None
        if self.ridge is None and validation is not None:
            return self._chosen(rows, validation, theta, ridge)
        if self.ridge is None and start is None:
            kept, held_out = _split(rows)
            if kept.count and held_out.count:
                chosen = self._chosen(kept, held_out, theta, ridge)
                theta, ridge = _theta(chosen), number(chosen, "ridge")
        watched = validation if self.early_stopping else None
        return _state(self._fitted(rows, watched, theta, ridge).theta, ridge)

    def scores(self, state: State, features: Features, threads: int | None = None) -> Floats:
        """Return w·x + b of each row."""
        theta = _theta(state)
        _check_width(theta, features.shape[1])
        return linear_scores(features, theta, threads)

    def check_state(self, state: State) -> None:
        """Raise unless the state is weights, an intercept and a ridge."""
        if set(state) != {"weights", "intercept", "ridge"}:
            raise ParameterError("a linear prior needs weights, an intercept and a ridge")
        if state["weights"].ndim != 1 or state["intercept"].size != 1 or state["ridge"].size != 1:
            raise ParameterError(
                "a linear prior needs one row of weights, one intercept and one ridge"
            )
        if number(state, "ridge") < 0:
            raise ParameterError(f"the ridge must be 0 or more, not {number(state, 'ridge')}")

    def example_state(self, n_features: int) -> State | None:
        """Return weights of 1."""
        return _state(np.ones(n_features + 1), FIRST_RIDGE)

    def _chosen(self, rows: Rows, validation: Rows, theta: Floats, ridge: float) -> State:
        """Return the fit under the ridge that does best on validation rows.

        The optimum under a neighbor is guessed first: while none is better, the choice costs one
        pass over the validation rows.
        """
        from ebrank.priors.learners.minimization import curvature_at, moved, row_losses

        fitted = self._fitted(rows, None, theta, ridge)
        if not theta.any():  # a first fit ends far from where it started
            fitted = fitted._replace(curvature=curvature_at(rows, fitted.theta, ridge))
        guesses = {
            step: moved(fitted, ridge, RIDGES[_place(ridge) + step])
            for step in (1, -1)
            if 0 <= _place(ridge) + step < len(RIDGES)
        }
        losses, *of_guesses = row_losses(validation, np.array([fitted.theta, *guesses.values()]))
        for step, guessed in zip(guesses, of_guesses, strict=True):
            if surely_lower(guessed, losses):
                better, found = self._walked(rows, validation, fitted, losses, ridge, step)
                if found != ridge:
                    return _state(better.theta, found)
        return _state(fitted.theta, ridge)

    def _walked(
        self,
        rows: Rows,
        validation: Rows,
        fitted: Fitted,
        losses: Floats,
        ridge: float,
        step: int,
    ) -> tuple[Fitted, float]:
        """Return the fit and the ridge where steps along the grid no longer lower the losses."""
        from ebrank.priors.learners.minimization import moved, row_losses

        while 0 <= _place(ridge) + step < len(RIDGES):
            other = RIDGES[_place(ridge) + step]
            guess = moved(fitted, ridge, other)
            if not surely_lower(row_losses(validation, guess[None])[0], losses):
                break
            refitted = self._fitted(rows, None, guess, other)
            [lower] = row_losses(validation, refitted.theta[None])
            if not surely_lower(lower, losses):
                break
            fitted, losses, ridge = refitted, lower, other
        return fitted, ridge

    def _fitted(self, rows: Rows, watched: Rows | None, theta: Floats, ridge: float) -> Fitted:
        from ebrank.priors.learners.minimization import minimize  # Numba takes a while to import

        return minimize(
            rows,
            watched,
            theta,
            ridge,
            patience=self.patience,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
        )

    def _start(self, n_features: int, start: State | None) -> tuple[Floats, float]:
        """Return the θ and the ridge to start with."""
        given = FIRST_RIDGE if self.ridge is None else self.ridge
        if start is None:
            return np.zeros(n_features + 1), given
        theta = _theta(start)
        _check_width(theta, n_features)
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
        raise ParameterError(f"row {row} of the features has a number that is not finite")
    return scores


def _state(theta: Floats, ridge: float) -> State:
    return {"weights": theta[:-1], "intercept": theta[-1:], "ridge": np.array([ridge])}


def _theta(state: State) -> Floats:
    return np.append(state["weights"], state["intercept"])


def _check_width(theta: Floats, n_features: int) -> None:
    if len(theta) != n_features + 1:
        raise ParameterError(
            f"this prior was fitted on {len(theta) - 1} features, not {n_features}"
        )


def _place(ridge: float) -> int:
    """Return a ridge's place in the grid, or where it would be."""
    return int(np.argmin(np.abs(np.log(RIDGES) - np.log(max(ridge, RIDGES[0])))))


def surely_lower(losses: Floats, others: Floats) -> bool:
    """Return whether the mean of paired losses is lower by more than chance explains."""
    if len(losses) < FEWEST:
        return False
    difference = others - losses
    return bool(difference.mean() > SURE * difference.std() / np.sqrt(len(difference)))


def _split(rows: Rows) -> tuple[Rows, Rows]:
    """Return the rows to keep, and every fifth to hold out."""
    place = np.cumsum(rows.included) - 1
    held_out: Bools = place % HELD_OUT == HELD_OUT - 1
    return rows.subset(~held_out), rows.subset(held_out)
