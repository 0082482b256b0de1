"""The optimizer of the linear learner: its gradient, its metric, its guesses, when it stops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

from ebrank.priors.learners.minimization import (
    Fitted,
    curvature_at,
    minimize,
    moved,
    row_losses,
    value_and_gradient,
)
from ebrank.priors.rows import Rows
from ebrank.typing import Floats
from tests.priors.made_up import made_up, rows_of

STOPPING: dict[str, Any] = {"patience": 5, "max_iterations": 200, "tolerance": 1e-3}


def fit(rows: Rows, validation: Rows | None, start: Floats, ridge: float, **other: Any) -> Fitted:  # noqa: ANN401
    return minimize(rows, validation, start, ridge, **STOPPING | other)


def slow_loss(theta: Floats, rows: Rows, ridge: float, beta: float = 5.0) -> float:
    """Return the penalized mean loss by SciPy's log Γ."""
    seen = rows.included
    c, n = rows.evidence[seen].T
    alpha = np.exp(np.clip(rows.features[seen].astype(float) @ theta[:-1] + theta[-1], -10, 10))
    lg = scipy.special.gammaln
    losses = lg(alpha) - lg(alpha + beta) - lg(c + alpha) + lg(n + alpha + beta)
    return float(losses.mean() + ridge / 2 * (theta[:-1] @ theta[:-1]))


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_gradient_by_finite_differences(estimator: str) -> None:
    rows = rows_of(*made_up(300, 4, seed=2), estimator=estimator)
    theta = np.random.default_rng(0).normal(size=5)
    value, gradient = value_and_gradient(rows, theta, 0.3)
    assert value == pytest.approx(slow_loss(theta, rows, 0.3), rel=1e-12)
    numeric = scipy.optimize.approx_fprime(theta, slow_loss, 1e-6, rows, 0.3)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)


@pytest.mark.parametrize("estimator", ["ips", "exact"])
def test_metric_is_the_second_derivative_where_the_loss_is_convex(estimator: str) -> None:
    rows = rows_of(*made_up(2000, 3, seed=3), estimator=estimator)
    theta = fit(rows, None, np.zeros(4), 1e-6).theta
    curvature = np.tril(curvature_at(rows, theta, 1e-6))
    whole = curvature + np.tril(curvature, -1).T
    numeric = [
        (
            value_and_gradient(rows, theta + step, 1e-6)[1]
            - value_and_gradient(rows, theta - step, 1e-6)[1]
        )
        / 2e-4
        for step in 1e-4 * np.eye(4)
    ]
    np.testing.assert_allclose(whole, numeric, rtol=0.1, atol=0.02)


def test_row_losses_are_those_of_the_included_rows() -> None:
    rows = rows_of(*made_up(300, 3, seed=4, mean=1.0))
    theta = np.array([0.5, -1.0, 0.2, -0.3])
    scores = rows.features.astype(float) @ theta[:-1] + theta[-1]
    expected = rows.losses_and_slopes(scores)[0][rows.included]
    np.testing.assert_allclose(row_losses(rows, theta), expected, rtol=1e-6)
    value, _ = value_and_gradient(rows, theta, 0.0)
    assert row_losses(rows, theta).mean() == pytest.approx(value)


def test_early_stopping_keeps_the_best_weights_on_the_way() -> None:
    rows = rows_of(*made_up(60, 20, seed=6))  # few rows, many features: it overfits
    unseen = rows_of(*made_up(4000, 20, seed=6))
    start = np.zeros(21)
    stopped, ignored = fit(rows, unseen, start, 1e-6), fit(rows, None, start, 1e-6)
    losses = [row_losses(unseen, outcome.theta).mean() for outcome in (stopped, ignored)]
    assert losses[0] < losses[1]
    assert fit(rows, unseen, start, 1e-6, patience=1).iterations <= stopped.iterations


def test_a_warm_start_takes_fewer_steps_to_the_same_place() -> None:
    features, stats = made_up(5000, 10, seed=5)
    rows = rows_of(features, stats)
    more = rows_of(features, stats.merge(made_up(5000, 10, seed=5)[1]))
    first = fit(rows, None, np.zeros(11), 1e-6, tolerance=1e-7)
    again = fit(rows, None, first.theta, 1e-6, tolerance=1e-7)
    assert again.iterations <= 1 < first.iterations
    warm = fit(more, None, first.theta, 1e-6, tolerance=1e-7)
    cold = fit(more, None, np.zeros(11), 1e-6, tolerance=1e-7)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.theta, cold.theta, atol=1e-4)


def test_a_fit_that_has_nowhere_to_go_stays_where_it_is() -> None:
    rows, unseen = rows_of(*made_up(3000, 3, seed=16)), rows_of(*made_up(1000, 3, seed=17))
    there = fit(rows, None, np.zeros(4), 1e-6, tolerance=1e-9).theta
    stayed = fit(rows, unseen, there, 1e-6)
    assert stayed.iterations == 0
    np.testing.assert_array_equal(stayed.theta, there)


@pytest.mark.parametrize("other", [1e-5, 1e-4, 1e-2, 1e-1])
def test_the_guess_at_another_ridge_is_close_to_its_optimum(other: float) -> None:
    rows = rows_of(*made_up(3000, 6, seed=18))
    start = fit(rows, None, np.zeros(7), 1e-3, tolerance=1e-7).theta
    here = fit(rows, None, start, 1e-3, tolerance=1e-7)
    there = fit(rows, None, start, other, tolerance=1e-7).theta
    guess = moved(here, 1e-3, other)
    gap = float(np.linalg.norm(there - here.theta))
    assert np.linalg.norm(guess - there) < max(0.5 * gap, 1e-4)
    np.testing.assert_allclose(moved(here, 1e-3, 1e-3), here.theta)
