"""How the linear learner finds its weights: quasi-Newton steps in whitened coordinates.

The mean loss plus ridge/2 · |w|² is minimized by L-BFGS in coordinates u = Lᵀθ where it bends about
equally in every direction, L Lᵀ being its second derivative on an even sample of rows. A refit then
takes a handful of passes over the features. The sample only sets the speed: the optimum is that of
all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ebrank import linalg
from ebrank.errors import ParameterError
from ebrank.priors.learners import linear_kernel
from ebrank.priors.rows import Rows
from ebrank.threads import map_blocks, one_blas_thread
from ebrank.typing import Floats

CURVATURE_ROWS = 16_384
CURVATURE_BLOCK = 2048


class Fitted(NamedTuple):
    """Outcome of a fit.

    Attributes:
        theta: weights, the intercept last.
        iterations: quasi-Newton iterations.
        validation_loss: mean validation loss at θ; None without validation rows.
        curvature: second derivative of the penalized loss where the fit began.
    """

    theta: Floats
    iterations: int
    validation_loss: float | None
    curvature: Floats


@dataclass(frozen=True)
class Stopping:
    """When to stop; see the parameters of `Linear` with the same names."""

    patience: int
    max_iterations: int
    tolerance: float


def minimize(
    rows: Rows, validation: Rows | None, start: Floats, ridge: float, stopping: Stopping
) -> Fitted:
    """Return the θ that minimizes the penalized loss, or the validation loss on the way there."""
    from scipy import optimize  # takes a while to import, and a server never needs it

    curvature = curvature_at(rows, start, ridge)
    lower = linalg.cholesky(curvature)

    def theta_at(u: Floats) -> Floats:
        return start + linalg.solve_lower_transposed(lower, u)

    def whitened(u: Floats) -> tuple[float, Floats]:
        value, gradient = value_and_gradient(rows, theta_at(u), ridge)
        if not np.isfinite(value):
            raise ParameterError("the features hold a number that is not finite, or overflow")
        return value, linalg.solve_lower(lower, gradient)

    watch = None if validation is None else _Watch(validation, start, stopping.patience)
    with one_blas_thread:
        result = optimize.minimize(
            whitened,
            np.zeros(len(start)),
            jac=True,
            method="L-BFGS-B",
            callback=None if watch is None else lambda u: watch.see(theta_at(u)),
            options={
                "maxiter": stopping.max_iterations,
                "gtol": stopping.tolerance,
                "ftol": 1e-15,
                "maxcor": 20,
            },
        )
    if watch is None:
        return Fitted(theta_at(result.x), int(result.nit), None, curvature)
    if result.nit == 0:  # the start is the optimum, and the only candidate
        watch.see(start)
    return Fitted(watch.best, int(result.nit), watch.loss, curvature)


def moved(fitted: Fitted, ridge: float, other: float) -> Floats:
    """Return about where the optimum lies under another ridge, by one Newton step."""
    change = np.full(len(fitted.theta), other - ridge)
    change[-1] = 0.0
    lower = linalg.cholesky(fitted.curvature + np.diag(change))
    step = linalg.solve_lower_transposed(lower, linalg.solve_lower(lower, change * fitted.theta))
    return fitted.theta - step


def mean_loss(rows: Rows, theta: Floats) -> float:
    """Return the mean loss of the included rows, without a penalty."""
    sums = rows.blocks(
        lambda start, stop: linear_kernel.loss_sum(*rows.task, rows.features, theta, start, stop)
    )
    loss = sum(sums) / rows.count
    if not np.isfinite(loss):
        raise ParameterError("the validation features hold a number that is not finite")
    return loss


def value_and_gradient(rows: Rows, theta: Floats, ridge: float) -> tuple[float, Floats]:
    """Return the penalized mean loss and its gradient in one pass over the features."""
    sums = rows.blocks(
        lambda start, stop: linear_kernel.loss_and_gradient_sum(
            *rows.task, rows.features, theta, start, stop
        )
    )
    penalty = ridge * theta
    penalty[-1] = 0.0  # the intercept is free
    value = sum(loss for loss, _ in sums) / rows.count + 0.5 * float(penalty @ theta)
    gradient = np.add.reduce([part for _, part in sums]) / rows.count + penalty
    return value, gradient


def curvature_at(rows: Rows, theta: Floats, ridge: float) -> Floats:
    """Return the second derivative of the penalized loss at θ, from an even sample of rows."""
    chosen = np.flatnonzero(rows.included)
    chosen = chosen[:: max(1, len(chosen) // CURVATURE_ROWS)]
    parts = map_blocks(
        lambda start, stop: linear_kernel.curvature_sum(
            *rows.task, rows.features, theta, chosen, start, stop
        ),
        total=len(chosen),
        block=CURVATURE_BLOCK,
        threads=rows.threads,
    )
    curvature = np.add.reduce(parts) / len(chosen)
    # the floor, relative to each feature's own scale, keeps directions that no sampled row
    # bends from looking infinitely easy
    floor = np.maximum(1e-6 * np.diagonal(curvature), 1e-12)
    whole: Floats = curvature + np.diag(ridge + floor)
    return whole


class _Watch:
    """Follows the validation loss and remembers where it was lowest."""

    def __init__(self, validation: Rows, start: Floats, patience: int) -> None:
        self._validation = validation
        self._patience = patience
        self._waited = 0
        self.best = start
        self.loss = np.inf  # the start is no candidate: a warm one would rather stay as it is

    def see(self, theta: Floats) -> None:
        """Look at one iterate; stop the optimizer when patience is used up."""
        loss = mean_loss(self._validation, theta)
        if loss < self.loss:
            self.loss, self.best, self._waited = loss, theta, 0
            return
        self._waited += 1
        if self._waited >= self._patience:
            raise StopIteration
