"""The learners' passes over the feature matrix, compiled.

One pass computes score, loss and gradient of a row while the row is in cache. Features stay float32
in memory; sums are float64. θ holds the weights and, last, the intercept.
"""

from __future__ import annotations

import numpy as np

from ebrank.kernels.compiled import inner, kernel
from ebrank.model.prior.kernels import evaluate
from ebrank.model.prior.rows import LossTask
from ebrank.typing import Features, Floats, Ints

TOGETHER = 4
"""Rows whose outer products are added together: memory is slower than arithmetic."""


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
