"""The linear prior's passes over the feature matrix, compiled.

One pass computes score, loss and gradient of a row while the row is in cache. Features stay float32
in memory; sums are float64. θ holds the weights and, last, the intercept.
"""

from __future__ import annotations

import numpy as np

from ebrank.compiled import kernel, leaf
from ebrank.equations import (
    HIGHEST_LOG_ALPHA,
    LOWEST_LOG_ALPHA,
    prior_alpha,
    prior_loss,
    prior_loss_and_gradient,
)
from ebrank.typing import Bools, Features, Floats, Ints


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


@leaf
def loss_and_slope(s: float, clicks: float, trials: float, beta: float) -> tuple[float, float]:
    """Return the loss of a score and ∂loss/∂score = α ∂loss/∂α, which is 0 where it is clipped."""
    alpha = prior_alpha(s)
    loss, slope = prior_loss_and_gradient(clicks, trials, alpha, beta)
    return loss, slope * alpha * (LOWEST_LOG_ALPHA <= s <= HIGHEST_LOG_ALPHA)


@kernel
def loss_sum(
    features: Features,
    clicks: Floats,
    trials: Floats,
    included: Bools,
    theta: Floats,
    beta: float,
    start: int,
    stop: int,
) -> float:
    """Return the summed loss (eq:PriorlossM) of the included rows among start..stop."""
    loss = 0.0
    for i in range(start, stop):
        if included[i]:
            alpha = prior_alpha(score(features, i, theta))
            loss += prior_loss(clicks[i], trials[i], alpha, beta)
    return loss


@kernel
def loss_and_gradient_sum(
    features: Features,
    clicks: Floats,
    trials: Floats,
    included: Bools,
    theta: Floats,
    beta: float,
    start: int,
    stop: int,
) -> tuple[float, Floats]:
    """Return the summed loss and its gradient by θ over the included rows among start..stop."""
    n_features = features.shape[1]
    loss = 0.0
    gradient = np.zeros(n_features + 1)
    for i in range(start, stop):
        if included[i]:
            s = score(features, i, theta)
            row_loss, slope = loss_and_slope(s, clicks[i], trials[i], beta)
            loss += row_loss
            for j in range(n_features):
                gradient[j] += slope * features[i, j]
            gradient[n_features] += slope
    return loss, gradient


@kernel
def curvature_sum(
    features: Features,
    clicks: Floats,
    trials: Floats,
    rows: Ints,
    theta: Floats,
    beta: float,
    start: int,
    stop: int,
) -> Floats:
    """Return the summed second derivative by θ, lower triangle, over rows[start:stop].

    The loss is not convex in the score everywhere; a row that curves down counts as flat, so that
    the sum stays positive semi-definite and can serve as a metric.
    """
    n_features = features.shape[1]
    total = np.zeros((n_features + 1, n_features + 1))
    x = np.ones(n_features + 1)
    step = 1e-4
    for r in range(start, stop):
        i = rows[r]
        s = score(features, i, theta)
        _, up = loss_and_slope(s + step, clicks[i], trials[i], beta)
        _, down = loss_and_slope(s - step, clicks[i], trials[i], beta)
        bend = max((up - down) / (2.0 * step), 0.0)
        for j in range(n_features):
            x[j] = features[i, j]
        for j in range(n_features + 1):
            scaled = bend * x[j]
            for k in range(j + 1):
                total[j, k] += scaled * x[k]
    return total
