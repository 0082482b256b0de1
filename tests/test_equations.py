"""Every formula against an independent calculation, and compiled code against arrays."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln

from ebrank import equations as eq
from ebrank.kernels.compiled import kernel

shape = st.floats(0.3, 50.0)
count = st.integers(0, 30)


# --- users ------------------------------------------------------------------------------------


@given(st.integers(1, 50), st.floats(0, 3), st.integers(1, 50))
def test_examination_by_its_definition(rank: int, severity: float, cutoff: int) -> None:
    expected = (1 / math.log2(rank + 1)) ** severity if rank <= cutoff else 0.0
    assert eq.examination(float(rank), severity, cutoff) == pytest.approx(expected)


@pytest.mark.parametrize("max_label", [1, 2, 4])
def test_labels_gain_ever_more_and_relevance_spans_noise_to_one(max_label: int) -> None:
    gain = 0.0
    for label in range(max_label + 1):
        assert eq.label_gain(float(label)) == gain
        expected = 0.1 + 0.9 * gain / (2**max_label - 1)
        assert eq.relevance_probability(float(label), max_label) == pytest.approx(expected)
        gain = 2 * gain + 1
    assert eq.relevance_probability(float(max_label), max_label) == pytest.approx(1.0)


def test_a_click_takes_examination_and_relevance_which_are_independent() -> None:
    assert eq.click_probability(0.6, 0.3) == pytest.approx(0.18)


# --- the prior and the posterior --------------------------------------------------------------


@given(st.floats(0, 60), st.floats(0, 60), shape, shape, st.sampled_from([0.5, 0.9, 0.99]))
def test_the_posterior_is_a_beta_distribution(
    clicks: float, exposure: float, alpha: float, beta: float, level: float
) -> None:
    evidence = clicks, exposure, alpha, beta
    misses = max(exposure - clicks, 0.0)
    law = scipy.stats.beta(clicks + alpha, misses + beta)
    mean = eq.relevance(clicks, clicks + misses, alpha, beta)
    assert (mean, eq.posterior_spread(*evidence)) == pytest.approx((law.mean(), law.std()))
    outside = (1 - level) / 2
    interval = eq.posterior_interval(*evidence, level)
    assert law.cdf(interval) == pytest.approx([outside, 1 - outside], abs=1e-6)
    assert eq.posterior_interval(*evidence) == eq.posterior_interval(*evidence, 0.9)
    loss = betaln(alpha, beta) - betaln(clicks + alpha, misses + beta)
    assert eq.marginal_likelihood_loss(*evidence) == pytest.approx(loss, rel=1e-9, abs=1e-9)


@given(st.floats(0.05, 50), shape, st.floats(0, 60), st.floats(0, 60))
def test_training_loss_and_slope_in_high_precision_also_where_clicks_exceed_trials(
    alpha: float, beta: float, clicks: float, trials: float
) -> None:
    def loss(a: mpmath.mpf) -> mpmath.mpf:
        lg = mpmath.loggamma
        return lg(a) - lg(a + beta) - lg(clicks + a) + lg(trials + a + beta)

    found, slope = eq.prior_loss_and_gradient(clicks, trials, alpha, beta)
    assert found == pytest.approx(float(loss(alpha)), rel=1e-9, abs=1e-9)
    assert slope == pytest.approx(float(mpmath.diff(loss, alpha)), rel=1e-8, abs=1e-10)


def test_prior_alpha_is_positive_and_finite_everywhere() -> None:
    alpha = eq.prior_alpha(np.array([-1e30, -10.0, 0.0, 10.0, 1e30]))
    np.testing.assert_allclose(alpha, np.exp([-10.0, -10.0, 0.0, 10.0, 10.0]))


# --- exploration ------------------------------------------------------------------------------


@given(st.floats(0.01, 1), st.floats(0, 100), shape, shape)
def test_marginal_certainty_is_the_falling_rate_of_the_variance_bound(
    relevance: float, exposure: float, alpha: float, beta: float
) -> None:
    slope = mpmath.diff(lambda e: relevance / (e + alpha + beta), exposure)
    assert eq.marginal_certainty(relevance, exposure, alpha, beta) == pytest.approx(-float(slope))


# --- what a horizon is worth ------------------------------------------------------------------


def normal_index(w: float) -> float:
    """Return z = w·E[(Z − z)⁺] of a standard normal Z."""
    norm = scipy.stats.norm
    found = scipy.optimize.brentq(lambda z: z - w * (norm.pdf(z) - z * norm.sf(z)), 0.0, 10.0)
    return float(found)


@pytest.mark.parametrize("horizon", [0.01, 1.0, 30.0, 1000.0, 5e5])
def test_the_bonus_of_a_normal_posterior(horizon: float) -> None:
    """Far from the ends of relevance nothing saturates."""
    mean, spread = 0.3, 0.003
    w = eq.exploration_weight(mean, spread, horizon)
    s = spread**2 * horizon / (mean * (1 - mean))
    assert w == pytest.approx(s + 2 * math.sqrt(s), rel=1e-12)
    assert eq.horizon_bonus(mean, spread, horizon) == pytest.approx(
        spread * normal_index(w), rel=0.035
    )


@given(st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 1e9), st.floats(1, 100))
def test_a_score_with_a_horizon_is_no_more_than_1_and_rises_with_it(
    mean: float, spread: float, horizon: float, factor: float
) -> None:
    bonus = eq.horizon_bonus(mean, spread, horizon)
    assert 0.0 <= bonus <= eq.horizon_bonus(mean, spread, factor * horizon)
    assert mean + bonus <= 1.0 + 1e-12


def gittins_index(alpha: float, beta: float, horizon: int) -> float:
    """Return the index of a coin whose chance is Beta(α, β), by dynamic programming.

    It is the sure income per toss at which one would as soon stop tossing, when a toss k tosses
    ahead counts (1 − 1/H)^k. After some horizons of tosses one goes on as one stands.
    """
    discount, depth = 1.0 - 1.0 / horizon, 5 * horizon
    means = [(alpha + np.arange(n + 1)) / (alpha + beta + n) for n in range(depth + 1)]
    low, high = float(means[0][0]), 1.0
    while high - low > 1e-5:
        income = 0.5 * (low + high)
        stopped = income * horizon
        value = np.maximum(stopped, means[depth] * horizon)
        for mean in means[depth - 1 :: -1]:
            tossed = mean + discount * (mean * value[1:] + (1.0 - mean) * value[:-1])
            value = np.maximum(stopped, tossed)
        low, high = (income, high) if tossed[0] > stopped else (low, income)
    return 0.5 * (low + high)


def test_a_known_index() -> None:
    """Gittins' table has 0.7029 for Beta(1, 1) and a discount of 0.9, 0.8699 for 0.99."""
    assert gittins_index(1.0, 1.0, 10) == pytest.approx(0.7029, abs=2e-4)
    assert gittins_index(1.0, 1.0, 100) == pytest.approx(0.8699, abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "beta", "horizon"),
    [
        (100.0, 900.0, 100),  # s = 0.1
        (10.0, 90.0, 100),  # s = 1
        (20.0, 20.0, 100),  # s = 2.4
        (1.0, 5.0, 30),  # s = 4.3
        (1.0, 5.0, 100),  # s = 14
        (1.0, 1.0, 100),  # s = 33
        (5.0, 5.0, 400),  # s = 36
        (0.5, 0.5, 100),  # s = 50
    ],
)
def test_the_index_against_exact_ones(alpha: float, beta: float, horizon: int) -> None:
    """The docstring of `exploration_weight` says how far off it is."""
    mean = alpha / (alpha + beta)
    spread = math.sqrt(mean * (1 - mean) / (alpha + beta + 1))
    w = eq.exploration_weight(mean, spread, float(horizon))
    above, below = (scipy.stats.beta(alpha + more, beta).sf for more in (1.0, 0.0))
    index = scipy.optimize.brentq(
        lambda x: x - mean - w * (mean * above(x) - x * below(x)), mean, 1.0 - 1e-9
    )
    exact = gittins_index(alpha, beta, horizon)
    assert 0.9 < (index - mean) / (exact - mean) < 1.11


def test_no_doubt_or_no_future_is_worth_nothing() -> None:
    assert eq.horizon_bonus(0.3, 0.0, 100.0) == 0.0
    assert eq.horizon_bonus(0.3, 0.1, 0.0) == 0.0
    assert math.isfinite(eq.horizon_bonus(0.0, 0.0, 100.0))
    assert math.isfinite(eq.horizon_bonus(1.0, 0.1, 100.0))


@given(st.floats(0.01, 0.99), st.floats(0.05, 0.95))
def test_a_beta_has_the_moments_it_was_made_of(mean: float, doubt: float) -> None:
    spread = doubt * math.sqrt(mean * (1 - mean))
    law = scipy.stats.beta(*eq.beta_of(mean, spread))
    assert (law.mean(), law.std()) == pytest.approx((mean, spread))


def test_moments_that_no_beta_has_still_give_one() -> None:
    parameters = np.array(eq.beta_of(np.array([0.0, 0.4, 1.0]), np.array([0.0, 0.6, 0.0])))
    assert np.all((parameters > 0.0) & np.isfinite(parameters))


# --- compiled code ----------------------------------------------------------------------------

NUMBERS = {
    **{"rank": 3.0, "severity": 1.5, "cutoff": 5.0, "examination": 0.5, "relevance": 0.3},
    **{"label": 1.0, "max_label": 2.0, "noise": 0.1, "hits": 2.0, "clicks": 2.0},
    **{"trials": 7.0, "exposure": 7.0, "alpha": 1.3, "beta": 5.0, "marginal_certainty": 0.01},
    **{"epsilon": 20.0, "spread": 0.1, "horizon": 200.0, "score": 0.7},
}
"""What equations are called with, by the names of their parameters."""
FOR_ARRAYS_ONLY = {"posterior_interval", "beta_of"}  # the first by SciPy's quantiles
COMPILED = {
    name: value
    for name, value in vars(eq).items()
    if callable(value) and value.__module__ == eq.__name__ and name not in FOR_ARRAYS_ONLY
}


@pytest.mark.parametrize("function", COMPILED.values(), ids=COMPILED)
def test_compiled_equation_equals_the_array_one(function: Callable[..., Any]) -> None:
    @kernel
    def compiled(*numbers: float) -> Any:  # noqa: ANN401 (whatever the equation returns)
        return function(*numbers)

    first, *rest = [NUMBERS[name] for name in inspect.signature(function).parameters]
    on_arrays = np.array(function(np.full(2, first), *rest))[..., 0]
    np.testing.assert_allclose(compiled(first, *rest), on_arrays, rtol=1e-9)
