"""How the linear learner finds its weights: quasi-Newton steps in whitened coordinates.

L-BFGS minimizes the mean loss plus ridge/2 · |w|² in coordinates u = Lᵀθ, in which the curvature is
about the same in every direction; L Lᵀ is the second derivative on an even sample of rows. A refit
then takes a handful of passes over the features. The sample only affects the speed: the optimum is
that of all rows.

One pass over the features computes score, loss and gradient of a row while the row is in cache.
Features stay float32 in memory; sums are float64. θ holds the weights and, last, the intercept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ebrank.errors import ParameterError
from ebrank.kernels import linalg
from ebrank.kernels.compiled import inner, kernel
from ebrank.kernels.threads import map_blocks
from ebrank.model.prior.kernels import evaluate
from ebrank.model.prior.rows import LossTask, Rows
from ebrank.typing import Features, Floats, Ints

CURVATURE_ROWS = 16_384
CURVATURE_BLOCK = 2048
MAX_ITERATIONS = 200
PATIENCE = 5
"""Iterations without a lower validation loss before a fit ends."""
TOGETHER = 4
"""Rows whose outer products are added together: memory is slower than arithmetic."""


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
    tolerance: float,
    curvature: Floats | None = None,
) -> Fitted:
    """Return the θ that minimizes the penalized loss, or the loss of watched rows on the way there.

    It ends when the largest whitened gradient is at most `tolerance`. A `curvature` that is about
    that of the start saves computing it.
    """
    if curvature is None:
        curvature = curvature_at(rows, start, ridge)
    watch = None if watched is None else _Watch(watched, start)
    theta, iterations = descended(
        lambda theta: value_and_gradient(rows, theta, ridge),
        start,
        curvature,
        max_iterations=MAX_ITERATIONS,
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
        lambda start, stop: write_losses(rows.task, rows.features, theta, start, stop, losses)
    )
    chosen = losses[rows.included]
    if not np.all(np.isfinite(chosen)):
        raise ParameterError("the validation features hold a number that is not finite")
    return chosen


def value_and_gradient(rows: Rows, theta: Floats, ridge: float) -> tuple[float, Floats]:
    """Return the penalized mean loss and its gradient in one pass over the features."""
    sums = rows.blocks(
        lambda start, stop: loss_and_gradient_sum(rows.task, rows.features, theta, start, stop)
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
        lambda start, stop: curvature_sum(rows.task, rows.features, theta, chosen, start, stop),
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

    def __init__(self, validation: Rows, start: Floats) -> None:
        self._validation = validation
        self._waited = 0
        self.best = start
        self._lowest = np.inf  # a warm start is not a candidate: the fit would stay there

    def see(self, theta: Floats) -> None:
        """Compare one iterate; stop the optimizer after some without a lower loss."""
        loss = row_losses(self._validation, theta).mean()
        if loss < self._lowest:
            self._lowest, self.best, self._waited = loss, theta, 0
            return
        self._waited += 1
        if self._waited >= PATIENCE:
            raise StopIteration


# --- passes over the features, compiled -----------------------------------------------------------


@kernel
def score(features: Features, row: int, theta: Floats) -> float:
    """Return the linear score of one row."""
    total = 0.0
    for j in range(features.shape[1]):
        total += features[row, j] * theta[j]
    return total + theta[-1]  # type: ignore[no-any-return]


@kernel
def write_scores(features: Features, theta: Floats, start: int, stop: int, out: Floats) -> None:
    """Write the scores of rows start..stop."""
    for i in range(start, stop):
        out[i] = score(features, i, theta)


@kernel
def write_losses(
    task: LossTask, features: Features, theta: Floats, start: int, stop: int, losses: Floats
) -> None:
    """Write the loss of each included row among start..stop."""
    out = np.empty(2)
    for i in range(start, stop):
        if task.included[i]:
            evaluate(task, i, score(features, i, theta), out)
            losses[i] = out[0]


@kernel
def loss_and_gradient_sum(
    task: LossTask, features: Features, theta: Floats, start: int, stop: int
) -> tuple[float, Floats]:
    """Return the summed loss and its gradient by θ over the included rows among start..stop."""
    n_features = features.shape[1]
    total = 0.0
    gradient = np.zeros(n_features + 1)
    out = np.empty(2)
    for i in range(start, stop):
        if task.included[i]:
            evaluate(task, i, score(features, i, theta), out)
            total += out[0]
            slope = out[1]
            for j in range(n_features):
                gradient[j] += slope * features[i, j]
            gradient[n_features] += slope
    return total, gradient


@kernel
def curvature_sum(
    task: LossTask, features: Features, theta: Floats, rows: Ints, start: int, stop: int
) -> Floats:
    """Return the summed second derivative by θ, lower triangle, over rows[start:stop].

    A loss need not be convex in the score everywhere; a row that curves down counts as flat, so
    that the sum stays positive semi-definite and can serve as a metric.
    """
    n_features = features.shape[1]
    total = np.zeros((n_features + 1, n_features + 1))
    x, scaled = np.ones((TOGETHER, n_features + 1)), np.empty((TOGETHER, n_features + 1))
    out = np.empty(2)
    step = 1e-4
    for begin in range(start, stop, TOGETHER):
        for t in range(TOGETHER):
            bend = 0.0
            i = rows[min(begin + t, stop - 1)]
            if begin + t < stop:
                s = score(features, i, theta)
                evaluate(task, i, s + step, out)
                up = out[1]
                evaluate(task, i, s - step, out)
                bend = max((up - out[1]) / (2.0 * step), 0.0)
            for j in range(n_features):
                x[t, j] = features[i, j]
            for j in range(n_features + 1):
                scaled[t, j] = bend * x[t, j]
        add_outer_products(total, scaled, x)
    return total


@inner
def add_outer_products(total: Floats, left: Floats, right: Floats) -> None:
    """Add the products of `TOGETHER` pairs of rows to the lower triangle: one pass over it."""
    for j in range(len(total)):
        a, b, c, d = left[0, j], left[1, j], left[2, j], left[3, j]
        for k in range(j + 1):
            total[j, k] += a * right[0, k] + b * right[1, k] + c * right[2, k] + d * right[3, k]
