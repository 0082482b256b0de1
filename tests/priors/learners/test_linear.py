from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special

from ebrank import BehaviorStats, Examination, ParameterError
from ebrank.policy import Policy, make
from ebrank.priors.base import State
from ebrank.priors.learners.linear import RIDGES, Linear
from ebrank.priors.learners.minimization import (
    Fitted,
    Stopping,
    curvature_at,
    mean_loss,
    minimize,
    moved,
    value_and_gradient,
)
from ebrank.priors.rows import Rows
from ebrank.typing import Features, Floats
from tests.priors.made_up import clicked, made_up

Data = tuple[Features, BehaviorStats]
CURVE = Examination()
TIGHT: dict[str, Any] = {"ridge": 1e-6, "tolerance": 1e-8}


def rows_of(data: Data, threads: int | None = None, **parameters: Any) -> Rows:  # noqa: ANN401
    return make(**parameters).rows(*data, CURVE, threads)


def fit(
    data: Data,
    *,
    validation: Data | None = None,
    start: State | None = None,
    threads: int | None = None,
    **parameters: Any,  # noqa: ANN401
) -> State:
    policy = make(**parameters)
    rows = policy.rows(*data, CURVE, threads)
    unseen = None if validation is None else policy.rows(*validation, CURVE, threads)
    return policy.learner.fit(rows, unseen, start)


def theta_of(state: State) -> Floats:
    """Return the learned weights and intercept."""
    return np.append(state["weights"], state["intercept"])


def ridge_of(state: State) -> float:
    return float(state["ridge"][0])


def slow_loss(theta: Floats, data: Data, policy: Policy) -> float:
    """Return the penalized mean loss by SciPy's log Γ, from counts that NumPy weighs."""
    features, stats = data
    values = policy.values()
    p = 1 / np.log2(np.arange(2, 2 + stats.slots))
    shown, clicks = stats.counts[:, 0], stats.counts[:, 1]
    n, c, big_c, e = shown.sum(1), clicks.sum(1), clicks @ (1 / p), shown @ p
    ips = values["estimator"] == "ips"
    hits, trials = (big_c, n) if ips else (c, e)
    if values["clamp"]:
        hits, trials = (np.minimum(big_c, n), n) if ips else (c, np.maximum(e, c))
    seen = n > values["min_impressions"]
    hits, trials = hits[seen], trials[seen]
    alpha = np.exp(np.clip(features[seen].astype(float) @ theta[:-1] + theta[-1], -10, 10))
    lg, beta = special.gammaln, values["beta"]
    losses = lg(alpha) - lg(alpha + beta) - lg(hits + alpha) + lg(trials + alpha + beta)
    return float(losses.mean() + values["ridge"] / 2 * (theta[:-1] @ theta[:-1]))


# --- the optimum --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"estimator": "exposure"},
        {"beta": 2.0, "ridge": 0.1},
        {"clamp": True},
        {"min_impressions": 4},
        {"estimator": "exposure", "clamp": True, "ridge": 0.01},
    ],
)
def test_fit_reaches_the_optimum_of_a_brute_force_optimizer(parameters: dict[str, Any]) -> None:
    data = made_up(400, 3, seed=1)
    policy = make(**{**TIGHT, **parameters})
    theta = theta_of(policy.learner.fit(policy.rows(*data, CURVE), None, None))
    best = optimize.minimize(
        slow_loss,
        np.zeros(4),
        (data, policy),
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-13, "maxiter": 20_000, "maxfev": 20_000},
    )
    assert slow_loss(theta, data, policy) <= best.fun + 1e-10
    np.testing.assert_allclose(theta, best.x, atol=2e-4)


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_gradient_by_finite_differences(estimator: str) -> None:
    data = made_up(300, 4, seed=2)
    policy = make(estimator=estimator, ridge=0.3)
    theta = np.random.default_rng(0).normal(size=5)
    value, gradient = value_and_gradient(policy.rows(*data, CURVE), theta, 0.3)
    assert value == pytest.approx(slow_loss(theta, data, policy), rel=1e-8)
    numeric = optimize.approx_fprime(theta, slow_loss, 1e-6, data, policy)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)


def test_curvature_is_the_second_derivative_where_the_loss_is_convex() -> None:
    data = made_up(2000, 3, seed=3)
    rows = rows_of(data)
    theta = theta_of(fit(data, **TIGHT))
    lower = curvature_at(rows, theta, 1e-6)
    numeric = np.array(
        [
            (
                value_and_gradient(rows, theta + step, 1e-6)[1]
                - value_and_gradient(rows, theta - step, 1e-6)[1]
            )
            / 2e-4
            for step in 1e-4 * np.eye(4)
        ]
    )
    np.testing.assert_allclose(np.tril(lower), np.tril(numeric), rtol=0.1, atol=0.02)


@pytest.mark.parametrize("rows", [1, 500, 20_000])
def test_any_number_of_threads_gives_the_same_bits(rows: int) -> None:
    data = made_up(rows, 5, seed=4)
    unseen = made_up(700, 5, seed=40)
    fits = [fit(data, validation=unseen, threads=threads) for threads in (1, 2, 5)]
    scores = [
        Linear().scores(state, data[0], threads)
        for state, threads in zip(fits, (1, 2, 5), strict=True)
    ]
    for state, own in zip(fits[1:], scores[1:], strict=True):
        np.testing.assert_array_equal(theta_of(state), theta_of(fits[0]))
        assert ridge_of(state) == ridge_of(fits[0])
        np.testing.assert_array_equal(own, scores[0])


@pytest.mark.parametrize("scale", [1e-4, 1e3, 1e6, 1e8])
def test_the_scale_of_a_feature_does_not_matter(scale: float) -> None:
    features, stats = made_up(2000, 2, seed=13)
    stretched = features.copy()
    stretched[:, 1] *= scale
    plain = fit((features, stats), ridge=0.0, tolerance=1e-6)
    other = fit((stretched, stats), ridge=0.0, tolerance=1e-6)
    np.testing.assert_allclose(
        theta_of(other) * [1, scale, 1], theta_of(plain), rtol=1e-3, atol=1e-4
    )


def test_training_makes_no_copy_of_the_features() -> None:
    features, stats = made_up(200_000, 40, seed=9)
    fit((features[:20_000], stats[:20_000]))  # compiles and imports all it needs
    rows = rows_of((features, stats))
    assert np.shares_memory(rows.features, features)
    tracemalloc.start()
    Linear(max_iterations=3).fit(rows, None, None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < features.nbytes / 2


# --- warm starts and early stopping -------------------------------------------------------------


def minimized(data: Data, start: Floats, validation: Data | None = None) -> Fitted:
    unseen = None if validation is None else rows_of(validation)
    return minimize(rows_of(data), unseen, start, 1e-6, Stopping(5, 200, 1e-7))


def test_warm_start_takes_fewer_steps_to_the_same_place() -> None:
    features, stats = made_up(5000, 10, seed=5)
    more = stats.merge(made_up(5000, 10, seed=5)[1])
    first = minimized((features, stats), np.zeros(11))
    assert minimized((features, stats), first.theta).iterations <= 1 < first.iterations
    warm = minimized((features, more), first.theta)
    cold = minimized((features, more), np.zeros(11))
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.theta, cold.theta, atol=1e-4)


def test_early_stopping_keeps_the_best_weights_on_the_way() -> None:
    few = made_up(60, 20, seed=6)  # few rows, many features: it overfits
    unseen = made_up(4000, 20, seed=6)
    stopped = fit(few, validation=unseen, ridge=1e-6)
    ignored = fit(few, validation=unseen, ridge=1e-6, early_stopping=False)
    np.testing.assert_array_equal(theta_of(ignored), theta_of(fit(few, ridge=1e-6)))
    check = rows_of(unseen)
    assert mean_loss(check, theta_of(stopped)) < mean_loss(check, theta_of(ignored))
    fitted = minimized(few, np.zeros(21), unseen)
    assert fitted.validation_loss == mean_loss(check, fitted.theta)
    assert minimized(few, np.zeros(21)).validation_loss is None


def test_patience_lets_a_fit_go_on_for_longer() -> None:
    few, unseen = rows_of(made_up(60, 20, seed=6)), rows_of(made_up(4000, 20, seed=6))
    iterations = [
        minimize(few, unseen, np.zeros(21), 1e-6, Stopping(patience, 200, 1e-7)).iterations
        for patience in (1, 4)
    ]
    assert iterations[0] < iterations[1]


def test_early_stopping_does_not_freeze_a_warm_started_prior() -> None:
    features, stats = made_up(4000, 10, seed=14)
    unseen = made_up(1500, 10, seed=15)  # users who like other features: the start fits them best
    state: State | None = None
    for size in (1000, 2000, 4000):
        again = fit((features[:size], stats[:size]), validation=unseen, start=state, ridge=1e-6)
        assert state is None or not np.array_equal(theta_of(again), theta_of(state))
        state = again


def test_a_refit_that_has_nowhere_to_go_still_has_a_validation_loss() -> None:
    data, unseen = made_up(3000, 3, seed=16), made_up(1000, 3, seed=17)
    optimum = minimize(rows_of(data), None, np.zeros(4), 1e-6, Stopping(5, 200, 1e-9)).theta
    again = minimize(rows_of(data), rows_of(unseen), optimum, 1e-6, Stopping(5, 200, 1e-3))
    assert again.iterations == 0
    np.testing.assert_array_equal(again.theta, optimum)
    assert again.validation_loss == mean_loss(rows_of(unseen), optimum)


@pytest.mark.parametrize("ridge", [None, 1e-3])
def test_validation_that_nobody_has_seen_decides_nothing(ridge: float | None) -> None:
    features, stats = made_up(300, 3, seed=7)
    empty = (features, BehaviorStats.zeros(300))
    plain = fit((features, stats), ridge=ridge)
    checked = fit((features, stats), ridge=ridge, validation=empty)
    np.testing.assert_array_equal(theta_of(checked), theta_of(plain))
    assert ridge_of(checked) == ridge_of(plain)


def test_without_rows_a_fit_leaves_the_start_as_it_is() -> None:
    features, stats = made_up(200, 2, seed=8)
    nobody = (features, BehaviorStats.zeros(200))
    assert theta_of(fit(nobody)).tolist() == [0.0] * 3
    learned = fit((features, stats))
    again = fit(nobody, start=learned)
    np.testing.assert_array_equal(theta_of(again), theta_of(learned))
    assert ridge_of(again) == ridge_of(learned)


# --- the ridge ----------------------------------------------------------------------------------


def noise(rows: int, n_features: int, seed: int) -> Data:
    """Return features that have nothing to do with what users like."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, n_features)).astype(np.float32)
    return features, clicked(rng, rng.beta(1, 2, rows), mean=8.0)


def signal(rows: int, seed: int, sign: float = 1.0) -> Data:
    """Return two narrow features, which need large weights, that decide what users like."""
    rng = np.random.default_rng(seed)
    features = rng.normal(0, 0.05, size=(rows, 2)).astype(np.float32)
    alpha = np.exp(features @ np.array([30.0, -20.0]) * sign)
    return features, clicked(rng, alpha / (alpha + 5), mean=8.0)


def test_a_large_ridge_is_chosen_where_features_say_nothing() -> None:
    assert ridge_of(fit(noise(300, 40, 1), validation=noise(2000, 40, 2))) >= 1e-2
    assert ridge_of(fit(noise(300, 40, 1))) >= 1e-2


def test_a_small_ridge_is_chosen_where_features_need_large_weights() -> None:
    assert ridge_of(fit(signal(4000, 1), validation=signal(2000, 2))) <= 1e-4
    assert ridge_of(fit(signal(4000, 1))) <= 1e-4


def test_validation_rows_alone_choose_the_ridge() -> None:
    data = signal(4000, 1)
    agree = fit(data, validation=signal(2000, 2), early_stopping=False)
    differ = fit(data, validation=signal(2000, 2, sign=-1.0), early_stopping=False)
    assert ridge_of(agree) < 1e-3 < ridge_of(differ)
    for state in (agree, differ):  # and the weights are those of all training rows
        same = fit(data, ridge=ridge_of(state), tolerance=1e-8)
        rows, ridge = rows_of(data), ridge_of(state)
        best, _ = value_and_gradient(rows, theta_of(same), ridge)
        assert value_and_gradient(rows, theta_of(state), ridge)[0] <= best + 1e-6


def test_without_validation_every_fifth_row_that_counts_is_held_out_to_choose_the_ridge() -> None:
    features, stats = noise(600, 30, 3)
    stats.counts[::7] = 0  # rows that nobody has seen are neither kept nor held out
    seen = np.flatnonzero(stats.shown > 0)
    held_out = seen[4::5]
    kept = np.setdiff1d(seen, held_out)
    chosen = fit((features[kept], stats[kept]), validation=(features[held_out], stats[held_out]))
    whole = fit((features, stats))
    assert ridge_of(whole) == ridge_of(chosen)
    rows, ridge = rows_of((features, stats)), ridge_of(whole)
    optimum = fit((features, stats), ridge=ridge, tolerance=1e-8)
    best, _ = value_and_gradient(rows, theta_of(optimum), ridge)
    assert value_and_gradient(rows, theta_of(whole), ridge)[0] <= best + 1e-6
    assert value_and_gradient(rows, theta_of(chosen), ridge)[0] > best + 1e-4


def test_too_few_rows_to_hold_one_out_take_the_first_ridge() -> None:
    features, stats = made_up(40, 2, seed=21)
    few = np.flatnonzero(stats.shown > 0)[:4]
    state = fit((features[few], stats[few]))
    assert ridge_of(state) == 1e-3
    np.testing.assert_array_equal(
        theta_of(state), theta_of(fit((features[few], stats[few]), ridge=1e-3))
    )


def test_the_choice_is_deterministic() -> None:
    first, second = (fit(noise(300, 40, 1), validation=noise(500, 40, 2)) for _ in range(2))
    np.testing.assert_array_equal(theta_of(first), theta_of(second))
    assert ridge_of(first) == ridge_of(second)
    assert ridge_of(first) in RIDGES


def test_a_number_switches_the_choice_off() -> None:
    for ridge in (0.0, 0.037):
        for validation in (None, noise(500, 40, 2)):
            state = fit(noise(300, 40, 1), validation=validation, ridge=ridge)
            assert ridge_of(state) == ridge
            again = fit(noise(300, 40, 1), validation=validation, ridge=ridge, start=state)
            assert ridge_of(again) == ridge


def test_a_refit_looks_at_the_neighbors_of_the_last_ridge() -> None:
    data, unseen = noise(300, 40, 1), noise(2000, 40, 2)
    state = fit(data, ridge=1e-4)
    ridges = []
    for _ in range(3):
        state = fit(data, validation=unseen, start=state)
        ridges.append(ridge_of(state))
    assert ridges == [1e-3, 1e-2, 1e-1]


def test_a_newton_step_guesses_the_optimum_under_another_ridge() -> None:
    rows = rows_of(made_up(3000, 4, seed=22))
    near = minimize(rows, None, np.zeros(5), 1e-3, Stopping(5, 200, 1e-9))
    at = minimize(rows, None, near.theta, 1e-3, Stopping(5, 200, 1e-9))  # curvature at the optimum
    other = minimize(rows, None, np.zeros(5), 2e-3, Stopping(5, 200, 1e-9))
    guess = moved(at, 1e-3, 2e-3)
    assert np.abs(guess - other.theta).max() < 0.1 * np.abs(at.theta - other.theta).max()


# --- edges and refusals -------------------------------------------------------------------------


@st.composite
def awkward(draw: st.DrawFn) -> Data:
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
    slot = draw(st.sampled_from([0, 3, 15]))
    counts = np.zeros((rows, 2, 16), np.int32)
    counts[:, 0, slot], counts[:, 1, slot] = shown, clicks
    features = np.column_stack([columns[name] for name in chosen]).astype(np.float32)
    return features, BehaviorStats(counts)


STEEP = Examination(severity=3.0)  # p is about 0.001 at rank 1000: C is far above n


@given(awkward(), st.sampled_from(["ips", "exposure"]), st.booleans(), st.floats(0.1, 50))
def test_no_data_gives_a_number_that_is_not_finite(
    data: Data, estimator: str, clamp: bool, beta: float
) -> None:
    features, stats = data
    policy = make(estimator=estimator, clamp=clamp, beta=beta)
    rows = policy.rows(features, stats, STEEP)
    first = policy.learner.fit(rows, rows, None)
    state = policy.learner.fit(rows, None, first)
    assert np.all(np.isfinite(theta_of(state)))
    alpha = policy.prior(state, features).a
    assert np.all(np.isfinite(alpha) & (alpha > 0))


@pytest.mark.parametrize(
    "bad",
    [
        {"ridge": -1.0},
        {"ridge": float("nan")},
        {"patience": 0},
        {"max_iterations": 0},
        {"max_iterations": 2.5},
        {"tolerance": 0.0},
        {"early_stopping": 1},
    ],
)
def test_parameters_out_of_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(bad))):
        Linear(**bad)


def test_features_that_do_not_fit_are_refused() -> None:
    features, stats = made_up(20, 2, seed=12)
    fitted = fit((features, stats))
    with pytest.raises(ParameterError, match="20 rows of features, behavior of 19"):
        fit((features, stats[:19]))
    with pytest.raises(ParameterError, match="matrix"):
        fit((features[0], stats[:2]))
    with pytest.raises(ParameterError, match="2 features, not 1"):
        Linear().scores(fitted, features[:, :1])
    with pytest.raises(ParameterError, match="2 features, not 1"):
        fit((features[:, :1], stats), start=fitted)
    wide = np.ones((20, 500), np.float32)
    with pytest.raises(ParameterError, match="validation has 500 features, training 2"):
        fit((features, stats), validation=(wide, stats))


@pytest.mark.parametrize("ridge", [None, 1e-3])
def test_features_that_are_not_finite_are_refused(ridge: float | None) -> None:
    features, stats = made_up(20, 2, seed=12)
    stats.counts[7, 0, 0] += 1  # the broken row counts
    broken = features.copy()
    broken[7, 1] = np.nan
    with pytest.raises(ParameterError, match="not finite"):
        fit((broken, stats), ridge=ridge)
    with pytest.raises(ParameterError, match="row 7"):
        Linear().scores(fit((features, stats)), broken)
    with pytest.raises(ParameterError, match="validation features hold"):
        fit((features, stats), validation=(broken, stats), ridge=ridge)
