from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special

from ebrank import BehaviorStats, LinearPrior, ParameterError
from ebrank.behavior import Estimator
from ebrank.priors import training
from tests.priors.made_up import Features, made_up

Floats = npt.NDArray[np.float64]


def theta_of(prior: LinearPrior) -> Floats:
    """Return the learned weights and intercept."""
    assert prior.weights_ is not None
    return np.append(prior.weights_, prior.intercept_)


def slow_loss(theta: Floats, features: Features, stats: BehaviorStats, prior: LinearPrior) -> float:
    """Return the penalized mean loss by SciPy's log Γ, row by row sums left to NumPy."""
    seen = stats.shown > prior.min_impressions
    c, n = (values[seen] for values in stats.evidence(prior.estimator, prior.clamp))
    alpha = np.exp(np.clip(features[seen].astype(float) @ theta[:-1] + theta[-1], -10, 10))
    lg, beta = special.gammaln, prior.beta
    losses = lg(alpha) - lg(alpha + beta) - lg(c + alpha) + lg(n + alpha + beta)
    return float(losses.mean() + prior.l2 / 2 * (theta[:-1] @ theta[:-1]))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"estimator": "exposure"},
        {"beta": 2.0, "l2": 0.1},
        {"clamp": True},
        {"min_impressions": 4},
        {"estimator": "exposure", "clamp": True, "l2": 0.01},
    ],
)
def test_fit_reaches_the_optimum_of_a_brute_force_optimizer(params: dict[str, Any]) -> None:
    features, stats = made_up(400, 3, seed=1)
    prior = LinearPrior(tolerance=1e-8, **params).fit(features, stats)
    best = optimize.minimize(
        slow_loss,
        np.zeros(4),
        (features, stats, prior),
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-13, "maxiter": 20_000, "maxfev": 20_000},
    )
    theta = theta_of(prior)
    assert slow_loss(theta, features, stats, prior) <= best.fun + 1e-10
    np.testing.assert_allclose(theta, best.x, atol=2e-4)


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_gradient_by_finite_differences(estimator: Estimator) -> None:
    features, stats = made_up(300, 4, seed=2)
    prior = LinearPrior(estimator=estimator, l2=0.3)
    objective = training.objective(prior, features, stats)
    theta = np.random.default_rng(0).normal(size=5)
    value, gradient = objective.value_and_gradient(theta)
    assert value == pytest.approx(slow_loss(theta, features, stats, prior), rel=1e-12)
    numeric = optimize.approx_fprime(theta, slow_loss, 1e-6, features, stats, prior)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)


def test_metric_is_the_second_derivative_where_the_loss_is_convex() -> None:
    features, stats = made_up(2000, 3, seed=3)
    prior = LinearPrior().fit(features, stats)
    objective = training.objective(prior, features, stats)
    theta = theta_of(prior)
    lower = objective.metric(theta)
    numeric = np.array(
        [
            (
                objective.value_and_gradient(theta + step)[1]
                - objective.value_and_gradient(theta - step)[1]
            )
            / 2e-4
            for step in 1e-4 * np.eye(4)
        ]
    )
    np.testing.assert_allclose(lower @ lower.T, numeric, rtol=0.1, atol=0.02)


@pytest.mark.parametrize("rows", [1, 500, 20_000])
def test_any_number_of_threads_gives_the_same_bits(rows: int) -> None:
    features, stats = made_up(rows, 5, seed=4)
    fits = [LinearPrior(threads=threads).fit(features, stats) for threads in (1, 2, 5)]
    for prior in fits[1:]:
        np.testing.assert_array_equal(theta_of(prior), theta_of(fits[0]))
        np.testing.assert_array_equal(prior.predict(features)[0], fits[0].predict(features)[0])


def test_warm_start_takes_fewer_steps_to_the_same_place() -> None:
    features, stats = made_up(5000, 10, seed=5)
    more = stats.merge(made_up(5000, 10, seed=5)[1])
    warm = LinearPrior(warm_start=True, tolerance=1e-7).fit(features, stats)
    first = warm.iterations_
    warm.fit(features, stats)
    assert warm.iterations_ <= 1 < first
    warm.fit(features, more)
    cold = LinearPrior(tolerance=1e-7).fit(features, more)
    assert warm.iterations_ < cold.iterations_
    np.testing.assert_allclose(theta_of(warm), theta_of(cold), atol=1e-4)


def test_early_stopping_keeps_the_best_weights_on_the_way() -> None:
    features, stats = made_up(60, 20, seed=6)  # few rows, many features: it overfits
    unseen = made_up(4000, 20, seed=6)
    stopped = LinearPrior().fit(features, stats, validation=unseen)
    ignored = LinearPrior(early_stopping=False).fit(features, stats, validation=unseen)
    check = training.objective(stopped, *unseen)
    at = {
        name: check.loss(theta_of(prior))
        for name, prior in {"stopped": stopped, "ignored": ignored}.items()
    }
    assert at["stopped"] == stopped.validation_loss_
    assert at["stopped"] < at["ignored"]
    assert ignored.validation_loss_ is None


def test_validation_that_nobody_has_seen_decides_nothing() -> None:
    features, stats = made_up(300, 3, seed=7)
    empty = (features, BehaviorStats.zeros(300))
    plain = LinearPrior().fit(features, stats)
    checked = LinearPrior().fit(features, stats, validation=empty)
    np.testing.assert_array_equal(theta_of(checked), theta_of(plain))


def test_unfitted_and_unfed_priors_say_one() -> None:
    features, _ = made_up(5, 2, seed=8)
    for prior in (LinearPrior(), LinearPrior().fit(features, BehaviorStats.zeros(5))):
        alpha, beta = prior.predict(features)
        assert alpha.tolist() == [1.0] * 5
        assert beta.tolist() == [5.0] * 5


def test_training_makes_no_copy_of_the_features() -> None:
    features, stats = made_up(200_000, 40, seed=9)
    LinearPrior().fit(features[:20_000], stats[:20_000])  # compiles and imports all it needs
    objective = training.objective(LinearPrior(), features, stats)
    assert np.shares_memory(objective.features, features)
    tracemalloc.start()
    LinearPrior(max_iterations=3).fit(features, stats)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < features.nbytes / 2


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
    p = draw(st.sampled_from([1.0, 0.3, 1e-3]))  # C far above n for the last
    stats = BehaviorStats.from_arrays(
        {"shown": shown, "clicks": clicks, "weighted_clicks": clicks / p, "exposure": shown * p}
    )
    return np.column_stack([columns[name] for name in chosen]).astype(np.float32), stats


@given(awkward(), st.sampled_from(["ips", "exposure"]), st.booleans(), st.floats(0.1, 50))
def test_no_data_gives_a_number_that_is_not_one(
    data: tuple[Features, BehaviorStats], estimator: Estimator, clamp: bool, beta: float
) -> None:
    features, stats = data
    prior = LinearPrior(beta, estimator=estimator, clamp=clamp)
    prior.fit(features, stats, validation=(features, stats))
    prior.fit(features, stats)
    assert np.all(np.isfinite(theta_of(prior)))
    alpha, _ = prior.predict(features)
    assert np.all(np.isfinite(alpha) & (alpha > 0))
    if stats.shown.any():
        assert np.isfinite(prior.loss(features, stats))


def test_reported_loss_is_the_mean_marginal_likelihood() -> None:
    features, stats = made_up(50, 2, seed=10)
    prior = LinearPrior().fit(features, stats)
    alpha, beta = prior.predict(features)
    losses = [
        special.betaln(a, b) - special.betaln(c + a, max(e - c, 0) + b)
        for a, b, c, e, n in zip(
            alpha, beta, stats.clicks, stats.exposure, stats.shown, strict=True
        )
        if n > 0
    ]
    assert prior.loss(features, stats) == pytest.approx(np.mean(losses))
    with pytest.raises(ParameterError, match="nothing"):
        prior.loss(features, BehaviorStats.zeros(50))


@pytest.mark.parametrize("scale", [1e-4, 1e3, 1e6, 1e8])
def test_the_scale_of_a_feature_does_not_matter(scale: float) -> None:
    features, stats = made_up(2000, 2, seed=13)
    stretched = features.copy()
    stretched[:, 1] *= scale
    plain = LinearPrior(l2=0.0, tolerance=1e-6).fit(features, stats)
    other = LinearPrior(l2=0.0, tolerance=1e-6).fit(stretched, stats)
    np.testing.assert_allclose(
        theta_of(other) * [1, scale, 1], theta_of(plain), rtol=1e-3, atol=1e-4
    )


def test_early_stopping_does_not_freeze_a_warm_started_prior() -> None:
    features, stats = made_up(4000, 10, seed=14)
    unseen = made_up(1500, 10, seed=15)  # users who like other features: the start fits them best
    prior = LinearPrior(warm_start=True)
    for size in (1000, 2000, 4000):
        before = prior.weights_
        prior.fit(features[:size], stats[:size], validation=unseen)
        assert before is None or not np.array_equal(theta_of(prior)[:-1], before)


def test_a_refit_that_has_nowhere_to_go_still_tells_its_validation_loss() -> None:
    features, stats = made_up(3000, 3, seed=16)
    unseen = made_up(1000, 3, seed=17)
    prior = LinearPrior(warm_start=True, early_stopping=False, tolerance=1e-9).fit(features, stats)
    prior.set_params(early_stopping=True, tolerance=1e-3).fit(features, stats, validation=unseen)
    assert prior.iterations_ == 0
    assert prior.validation_loss_ == training.objective(prior, *unseen).loss(theta_of(prior))
