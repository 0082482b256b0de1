"""The linear learner: what it fits, its optimizer, and what it refuses."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, ParameterError
from ebrank.model.policy.policies import make
from ebrank.model.prior.learners.minimization import (
    Fitted,
    curvature_at,
    minimize,
    moved,
    row_losses,
    value_and_gradient,
)
from ebrank.model.prior.rows import Rows
from ebrank.typing import Features, Floats
from tests.model.prior.made_up import at_rank, fitted, made_up, rows_of, theta_of


def slow_loss(theta: Floats, rows: Rows, ridge: float, beta: float = 5.0) -> float:
    """Return the penalized mean loss by SciPy's log Γ."""
    seen = rows.included
    c, n = rows.evidence[seen].T
    alpha = np.exp(np.clip(rows.features[seen].astype(float) @ theta[:-1] + theta[-1], -10, 10))
    lg = scipy.special.gammaln
    losses = lg(alpha) - lg(alpha + beta) - lg(c + alpha) + lg(n + alpha + beta)
    return float(losses.mean() + ridge / 2 * (theta[:-1] @ theta[:-1]))


@pytest.mark.parametrize(
    "parameters",
    [
        {"ridge": 1e-6},
        {"ridge": 1e-6, "estimator": "exposure"},
        {"ridge": 0.1, "beta": 2.0},
        {"ridge": 1e-6, "min_impressions": 4},
    ],
)
def test_fit_reaches_the_optimum_of_a_brute_force_optimizer(parameters: dict[str, Any]) -> None:
    features, stats = made_up(400, 3, seed=1)
    state = fitted(features, stats, tolerance=1e-8, **parameters)
    rows = rows_of(features, stats, **parameters)
    beta = parameters.get("beta", 5.0)
    best = scipy.optimize.minimize(
        slow_loss,
        np.zeros(4),
        (rows, parameters["ridge"], beta),
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-13, "maxiter": 20_000, "maxfev": 20_000},
    )
    theta = theta_of(state)
    assert slow_loss(theta, rows, parameters["ridge"], beta) <= best.fun + 1e-10
    np.testing.assert_allclose(theta, best.x, atol=2e-4)


def test_the_exact_loss_is_fitted_to_its_optimum_too() -> None:
    features, stats = made_up(2000, 3, seed=1)
    rows = rows_of(features, stats, estimator="exact")
    state = fitted(features, stats, estimator="exact", ridge=1e-3, tolerance=1e-7)
    _, gradient = value_and_gradient(rows, theta_of(state), 1e-3)
    assert np.abs(gradient).max() < 1e-6


def test_validation_that_nobody_has_seen_decides_nothing() -> None:
    features, stats = made_up(300, 3, seed=7)
    empty = (features, BehaviorStats.zeros(300))
    for ridge in (None, 1e-3):
        plain = fitted(features, stats, ridge=ridge)
        checked = fitted(features, stats, validation=empty, ridge=ridge)
        np.testing.assert_array_equal(theta_of(checked), theta_of(plain))


def test_a_state_is_kept_where_there_is_nothing_to_learn_from() -> None:
    features, stats = made_up(300, 3, seed=9)
    state = fitted(features, stats, ridge=1e-3)
    again = fitted(features, BehaviorStats.zeros(300), start=state)
    assert theta_of(again).tolist() == theta_of(state).tolist()
    assert again["ridge"].tolist() == [1e-3]


@pytest.mark.slow
def test_training_makes_no_copy_of_the_features() -> None:
    features, stats = made_up(200_000, 40, seed=9)
    assert np.shares_memory(rows_of(features, stats).features, features)
    for ridge in (1e-3, None):
        fitted(features[:20_000], stats[:20_000], ridge=ridge)  # compiles and imports all it needs
        tracemalloc.start()
        fitted(features, stats, tolerance=0.1, ridge=ridge)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 0.6 * features.nbytes


@st.composite
def awkward(draw: st.DrawFn) -> tuple[Features, BehaviorStats]:
    """Draw data at every edge: unseen, all or none clicked, C > n, collinear, constant, huge."""
    rows = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    column = rng.random(rows)
    columns = {
        "random": rng.random(rows),
        "twin": column,
        "same": column,
        "zero": np.zeros(rows),
        "one": np.ones(rows),
        "huge": 1e4 * rng.normal(size=rows),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(columns)), min_size=1, max_size=5))
    shown = rng.integers(0, draw(st.sampled_from([1, 2, 50])), rows)
    clicks = {"all": shown, "none": 0 * shown, "some": rng.binomial(shown, 0.4)}[
        draw(st.sampled_from(["all", "none", "some"]))
    ]
    ranks = np.full(rows, draw(st.sampled_from([1, 5])))
    features = np.column_stack([columns[name] for name in chosen]).astype(np.float32)
    return features, at_rank(ranks, shown, clicks)


@given(awkward(), st.sampled_from(["ips", "exposure", "exact"]), st.floats(0.1, 50))
def test_no_data_gives_a_number_that_is_not_one(
    data: tuple[Features, BehaviorStats], estimator: str, beta: float
) -> None:
    parameters: dict[str, Any] = {"beta": beta, "estimator": estimator}
    for validation in (data, None):
        state = fitted(*data, validation=validation, **parameters)
        assert np.all(np.isfinite(theta_of(state)))
        alpha, _ = make(**parameters).prior.of_items(state, data[0])
        assert np.all(np.isfinite(alpha) & (alpha > 0))


@pytest.mark.parametrize("scale", [1e-4, 1e3, 1e6, 1e8])
def test_the_scale_of_a_feature_does_not_matter(scale: float) -> None:
    features, stats = made_up(2000, 2, seed=13)
    stretched = features.copy()
    stretched[:, 1] *= scale
    plain = fitted(features, stats, ridge=0.0, tolerance=1e-6)
    other = fitted(stretched, stats, ridge=0.0, tolerance=1e-6)
    np.testing.assert_allclose(
        theta_of(other) * [1, scale, 1], theta_of(plain), rtol=1e-3, atol=1e-4
    )


def test_early_stopping_does_not_freeze_a_warm_started_prior() -> None:
    features, stats = made_up(4000, 10, seed=14)
    unseen = made_up(1500, 10, seed=15)  # users who like other features: the start fits them best
    state = None
    for size in (1000, 2000, 4000):
        before = state
        state = fitted(features[:size], stats[:size], validation=unseen, start=before, ridge=1e-6)
        assert before is None or not np.array_equal(state["weights"], before["weights"])


def test_bad_data_is_refused_in_words() -> None:
    features, stats = made_up(20, 2, seed=12)
    state = fitted(features, stats)
    broken, wide = features.copy(), np.ones((20, 500), np.float32)
    broken[7, 1] = np.nan
    refused: list[tuple[str, Callable[[], object]]] = [
        ("fitted on 2 features, not 1", lambda: make().prior.of_items(state, features[:, :1])),
        ("fitted on 2 features, not 1", lambda: fitted(features[:, :1], stats, start=state)),
        ("not finite", lambda: fitted(broken, stats)),
        ("row 7 of the features", lambda: make().prior.of_items(state, broken)),
        ("validation features hold", lambda: fitted(features, stats, validation=(broken, stats))),
        (
            "validation has 500 features, training has 2",
            lambda: fitted(features, stats, validation=(wide, stats)),
        ),
    ]
    for words, call in refused:
        with pytest.raises(ParameterError, match=words):
            call()


# --- the optimizer --------------------------------------------------------------------------------


def fit(
    rows: Rows, validation: Rows | None, start: Floats, ridge: float, tolerance: float = 1e-3
) -> Fitted:
    return minimize(rows, validation, start, ridge, tolerance=tolerance)


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

    def gradient(step: Floats) -> Floats:
        return value_and_gradient(rows, theta + step, 1e-6)[1]

    numeric = [(gradient(step) - gradient(-step)) / 2e-4 for step in 1e-4 * np.eye(4)]
    np.testing.assert_allclose(whole, numeric, rtol=0.1, atol=0.02)


def test_early_stopping_keeps_the_best_weights_on_the_way() -> None:
    rows = rows_of(*made_up(60, 20, seed=6))  # few rows, many features: it overfits
    unseen = rows_of(*made_up(4000, 20, seed=6))
    start = np.zeros(21)
    stopped, ignored = fit(rows, unseen, start, 1e-6), fit(rows, None, start, 1e-6)
    losses = [row_losses(unseen, outcome.theta).mean() for outcome in (stopped, ignored)]
    assert losses[0] < losses[1]
    assert stopped.iterations < ignored.iterations


def test_a_warm_start_takes_fewer_steps_to_the_same_place() -> None:
    features, stats = made_up(5000, 10, seed=5)
    rows = rows_of(features, stats)
    more = rows_of(features, BehaviorStats(stats.counts + made_up(5000, 10, seed=5)[1].counts))
    first = fit(rows, None, np.zeros(11), 1e-6, tolerance=1e-7)
    again = fit(rows, None, first.theta, 1e-6, tolerance=1e-7)
    assert again.iterations <= 1 < first.iterations
    warm = fit(more, None, first.theta, 1e-6, tolerance=1e-7)
    cold = fit(more, None, np.zeros(11), 1e-6, tolerance=1e-7)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.theta, cold.theta, atol=1e-4)


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
