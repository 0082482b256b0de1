"""How the linear learner finds its weights: quasi-Newton steps in whitened coordinates.

L-BFGS minimizes the mean loss plus ridge/2 · |w|² in coordinates u = Lᵀθ, in which the curvature is
about the same in every direction; L Lᵀ is the second derivative on an even sample of rows. A refit
then takes a handful of passes over the features. The sample only affects the speed: the optimum is
that of all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ebrank.errors import ParameterError
from ebrank.kernels import linalg
from ebrank.kernels.threads import map_blocks
from ebrank.model.prior.learners import kernels
from ebrank.model.prior.rows import Rows
from ebrank.typing import Floats

CURVATURE_ROWS = 16_384
CURVATURE_BLOCK = 2048


class Fitted(NamedTuple):
    """Outcome of a fit.

    Attributes:
        theta: weights, the intercept last.
        iterations: quasi-Newton iterations.
        curvature: second derivative of the penalized loss about where the fit started.
    """

    theta: Floats
    iterations: int
    curvature: Floats


def minimize(
    rows: Rows,
    watched: Rows | None,
    start: Floats,
    ridge: float,
    *,
    patience: int,
    max_iterations: int,
    tolerance: float,
    curvature: Floats | None = None,
) -> Fitted:
    """Return the θ that minimizes the penalized loss, or the loss of watched rows on the way there.

    For when to stop, see the parameters of `Linear` with the same names. A `curvature` that is
    about that of the start saves computing it.
    """
    if curvature is None:
        curvature = curvature_at(rows, start, ridge)
    watch = None if watched is None else _Watch(watched, start, patience)
    theta, iterations = descended(
        lambda theta: value_and_gradient(rows, theta, ridge),
        start,
        curvature,
        max_iterations=max_iterations,
        tolerance=tolerance,
        see=None if watch is None else watch.see,
    )
    if watch is None:
        return Fitted(theta, iterations, curvature)
    if iterations == 0:  # the start is the optimum, and the only candidate
        watch.see(start)
    return Fitted(watch.best, iterations, curvature)


def descended(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    curvature: Floats,
    *,
    max_iterations: int,
    tolerance: float,
    see: Callable[[Floats], None] | None = None,
) -> tuple[Floats, int]:
    """Return where a function is lowest, and the iterations it took.

    Args:
        objective: value and gradient.
        start: where to start.
        curvature: about the second derivative, positive definite; it only affects the speed.
        max_iterations: the most iterations.
        tolerance: largest whitened gradient of an optimum.
        see: called with every iterate; raises StopIteration to stop.
    """
    from scipy import optimize  # takes a while to import, and a server never needs it

    lower = linalg.cholesky(curvature)

    def place(u: Floats) -> Floats:
        return start + linalg.solve_lower_transposed(lower, u)

    def whitened(u: Floats) -> tuple[float, Floats]:
        value, gradient = objective(place(u))
        if not np.isfinite(value):
            raise ParameterError("the features hold a number that is not finite, or overflow")
        return value, linalg.solve_lower(lower, gradient)

    result = optimize.minimize(
        whitened,
        np.zeros(len(start)),
        jac=True,
        method="L-BFGS-B",
        callback=None if see is None else lambda u: see(place(u)),
        options={"maxiter": max_iterations, "gtol": tolerance, "ftol": 1e-15, "maxcor": 20},
    )
    return place(result.x), int(result.nit)


def moved(fitted: Fitted, ridge: float, other: float) -> Floats:
    """Estimate the optimum under another ridge with one Newton step."""
    change = np.full(len(fitted.theta), other - ridge)
    change[-1] = 0.0
    lower = linalg.cholesky(fitted.curvature + np.diag(change))
    step = linalg.solve_lower_transposed(lower, linalg.solve_lower(lower, change * fitted.theta))
    return fitted.theta - step


def row_losses(rows: Rows, theta: Floats) -> Floats:
    """Return the loss of each included row, without a penalty."""
    losses = np.zeros(len(rows.features))
    rows.blocks(
        lambda start, stop: kernels.write_losses(
            rows.task, rows.features, theta, start, stop, losses
        )
    )
    chosen = losses[rows.included]
    if not np.all(np.isfinite(chosen)):
        raise ParameterError("the validation features hold a number that is not finite")
    return chosen


def value_and_gradient(rows: Rows, theta: Floats, ridge: float) -> tuple[float, Floats]:
    """Return the penalized mean loss and its gradient in one pass over the features."""
    sums = rows.blocks(
        lambda start, stop: kernels.loss_and_gradient_sum(
            rows.task, rows.features, theta, start, stop
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
        lambda start, stop: kernels.curvature_sum(
            rows.task, rows.features, theta, chosen, start, stop
        ),
        total=len(chosen),
        block=CURVATURE_BLOCK,
        threads=rows.threads,
    )
    curvature = np.add.reduce(parts) / len(chosen)
    # the floor, relative to each feature's own scale, keeps directions without curvature in the
    # sample from looking infinitely easy
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
        self._lowest = np.inf  # a warm start is not a candidate: the fit would stay there

    def see(self, theta: Floats) -> None:
        """Look at one iterate; stop the optimizer when patience is used up."""
        loss = row_losses(self._validation, theta).mean()
        if loss < self._lowest:
            self._lowest, self.best, self._waited = loss, theta, 0
            return
        self._waited += 1
        if self._waited >= self._patience:
            raise StopIteration
