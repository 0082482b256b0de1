"""A linear score w·x + b of the features, fitted by the family's loss plus ridge/2 · |w|².

The loss of held-out rows chooses the ridge: that of validation rows, or of each fifth of the
queries under a fit to the others. A fit starts at the ridge of the last one, the first at 1e-2, and
moves along a grid as long as that lowers the loss (`rows.favored`). With a given ridge, validation
rows decide when to stop instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ebrank.errors import ParameterError
from ebrank.kernels.arrays import read_only
from ebrank.kernels.threads import map_blocks
from ebrank.model.prior.base import Learner
from ebrank.model.prior.rows import BLOCK, Rows, favored, number, walked
from ebrank.parameters import param
from ebrank.typing import Features, Floats, State

if TYPE_CHECKING:
    from ebrank.model.prior.learners.minimization import Fitted

RIDGES = (*(factor * 10.0**power for power in range(-6, 1) for factor in (1.0, 3.0)), 10.0)
FIRST_RIDGE = 1e-2
SCORED = ("weights", "intercept", "leaf_value")
"""Arrays of a state that scores are sums of, those of trees included."""


@dataclass(frozen=True)
class Linear(Learner):
    """Weights and an intercept."""

    name = "linear"
    help = "A weight for each feature and an intercept."

    ridge: float | None = param(
        None,
        "penalty on the weights; auto chooses it by the loss of held-out rows",
        at_least=0,
        kind=float,
    )
    early_stopping: bool = param(
        True, "with a given ridge, keep the weights with the lowest validation loss on the way"
    )
    tolerance: float = param(
        1e-3,
        "largest whitened gradient of an optimum; the loss is then within its square",
        at_least=1e-12,
    )

    def fit(self, rows: Rows, validation: Rows | None, start: State | None) -> State:
        """Return weights, intercept and ridge; without included rows, the initial ones.

        If validation rows are None, rows with groups choose the ridge among themselves; without
        groups, it stays.
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
        if self.ridge is None:
            return self._chosen(rows, validation, theta, ridge)
        watched = validation if self.early_stopping else None
        return _state(self._fitted(rows, watched, theta, ridge).theta, ridge)

    def scores(self, state: State, features: Features, threads: int | None = None) -> Floats:
        """Return w·x + b of each row."""
        theta = _theta(state)
        _check_width(theta, features.shape[1])
        return linear_scores(features, theta, threads)

    def scaled(self, state: State, factor: float) -> State:
        """Return the state with all that scores are added up from multiplied."""
        return {name: array * factor if name in SCORED else array for name, array in state.items()}

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

    def _chosen(self, rows: Rows, validation: Rows | None, theta: Floats, ridge: float) -> State:
        """Return the fit under the ridge that does best on held-out rows.

        The optimum under a neighbor is guessed first: while none is better, the choice costs two
        passes over the held-out rows.
        """
        from ebrank.model.prior.learners.minimization import curvature_at, moved

        fitted = self._fitted(rows, None, theta, ridge)
        folds = rows.folds() if validation is None else [(rows, validation)]
        if not folds:
            return _state(fitted.theta, ridge)
        if not theta.any():  # a first fit ends far from where it started
            fitted = fitted._replace(curvature=curvature_at(rows, fitted.theta, ridge))
        apart = [fitted]  # without the held-out rows of each fold
        if validation is None:
            apart = [
                self._fitted(kept, None, fitted.theta, ridge, fitted.curvature) for kept, _ in folds
            ]
        losses = _held_out(folds, [fit.theta for fit in apart])
        groups = np.concatenate([held_out.included_groups for _, held_out in folds])

        def takes(here: float, there: float) -> bool:
            nonlocal apart, losses
            eager = validation is None and there > here
            guesses = [moved(fit, here, there) for fit in apart]
            if not favored(_held_out(folds, guesses), losses, groups, eager=eager):
                return False
            refitted = [
                self._fitted(kept, None, guess, there)
                for (kept, _), guess in zip(folds, guesses, strict=True)
            ]
            refitted_losses = _held_out(folds, [fit.theta for fit in refitted])
            if not favored(refitted_losses, losses, groups, eager=eager):
                return False
            apart, losses = refitted, refitted_losses
            return True

        chosen = walked(RIDGES, ridge, takes)
        if validation is not None:
            return _state(apart[0].theta, chosen)
        if chosen != ridge:
            fitted = self._fitted(rows, None, moved(fitted, ridge, chosen), chosen)
        return _state(fitted.theta, chosen)

    def _fitted(
        self,
        rows: Rows,
        watched: Rows | None,
        theta: Floats,
        ridge: float,
        curvature: Floats | None = None,
    ) -> Fitted:
        from ebrank.model.prior.learners.minimization import (
            minimize,  # Numba takes a while to import
        )

        return minimize(
            rows,
            watched,
            theta,
            ridge,
            tolerance=self.tolerance,
            curvature=curvature,
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
    from ebrank.model.prior.learners import minimization  # Numba takes a while to import

    scores = np.empty(len(features))
    matrix = read_only(features)
    map_blocks(
        lambda start, stop: minimization.write_scores(matrix, theta, start, stop, scores),
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


def _held_out(folds: Sequence[tuple[Rows, Rows]], thetas: Sequence[Floats]) -> Floats:
    """Return the losses of all held-out rows, each fold's under its own θ."""
    from ebrank.model.prior.learners.minimization import row_losses

    pairs = zip(folds, thetas, strict=True)
    return np.concatenate([row_losses(held_out, theta) for (_, held_out), theta in pairs])
