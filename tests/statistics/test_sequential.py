"""Anytime-valid intervals: against `ville`, against other ways to compute them, by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import ville
from scipy.stats import dirichlet_multinomial, multinomial, norm
from ville._boundaries import normal_mixture

from ebrank.errors import ParameterError
from ebrank.statistics.sequential import (
    ALPHA,
    FEWEST_UNITS,
    TUNED_FOR,
    Moments,
    difference,
    equal_lists_p,
    mean,
    sample_ratio_p,
    tuning,
)
from ebrank.typing import Floats


def units(seed: int, n: int = 400) -> tuple[Floats, Floats]:
    """Return clicks and lists of units, of which some make many lists."""
    rng = np.random.default_rng(seed)
    lists = 1 + rng.geometric(0.2, n)
    return rng.binomial(lists, rng.beta(2.0, 6.0, n)).astype(float), lists.astype(float)


def test_a_mean_is_the_asymptotic_sequence_of_the_oracle_at_every_time() -> None:
    x = np.random.default_rng(1).gamma(2.0, size=600)
    oracle = ville.AsymptoticCS(alpha=0.1, t_opt=300, min_samples=30).fit(x)
    for n in (30, 31, 200, 600):
        ours = mean(Moments.of(x[:n]), alpha=0.1, tuned_for=300)
        theirs = (oracle.estimate_[n - 1], oracle.lower_[n - 1], oracle.upper_[n - 1])
        assert ours == pytest.approx(theirs, rel=1e-5)


def test_one_sided_ends_are_those_of_the_one_sided_mixture() -> None:
    x = np.random.default_rng(2).normal(size=500)
    ours = mean(Moments.of(x), tuned_for=400, sided=1)
    rho = 1.0 / tuning(0.05, 400)
    bound = normal_mixture(np.array([500.0]), 0.05, rho, one_sided=True)[0] / 500.0
    # Waudby-Smith et al. bound the root of the oracle's equation from above, in closed form.
    assert x.std(ddof=1) * bound <= ours.high - ours.estimate < 1.02 * x.std(ddof=1) * bound
    assert ours.high < mean(Moments.of(x), tuned_for=400).high


def test_a_look_once_is_the_z_interval() -> None:
    x, y = np.random.default_rng(3).normal(size=(2, 300))
    ours = difference(Moments.of(x), Moments.of(y), looks="once", alpha=0.1)
    error = math.sqrt(x.var(ddof=1) / 300 + y.var(ddof=1) / 300)
    gap = x.mean() - y.mean()
    assert ours == pytest.approx((gap, *norm.interval(0.9, gap, error)))


def test_the_delta_method_agrees_with_a_bootstrap_over_units() -> None:
    clicks, lists = units(4, 1000)
    rng = np.random.default_rng(5)
    drawn = rng.integers(0, len(clicks), (4000, len(clicks)))
    bootstrap = (clicks[drawn].sum(axis=1) / lists[drawn].sum(axis=1)).std()
    arm = Moments.of(clicks, lists)
    assert math.sqrt(arm.variance) == pytest.approx(bootstrap, rel=0.05)
    binomial = math.sqrt(arm.mean * (1 - arm.mean) / arm.weight)
    assert math.sqrt(arm.variance) > 1.2 * binomial, "lists of one unit depend on each other"


def test_the_p_value_is_small_exactly_where_the_interval_excludes_0() -> None:
    """The p-value of lists compares arms of units whose lists are their values."""
    for pace in np.linspace(0.8, 1.2, 9):
        lists = np.random.default_rng(7).poisson([[3.0], [3.0 * pace]], (2, 400))
        control, treatment = (Moments.of(arm) for arm in lists)
        made = control.total + treatment.total
        low, high = difference(treatment, control, tuned_for=TUNED_FOR * 800.0 / made)[1:]
        assert (equal_lists_p([control, treatment]) <= ALPHA) == (not low <= 0.0 <= high)


def test_few_effective_units_have_no_ends() -> None:
    few = Moments.of(np.arange(FEWEST_UNITS - 1))
    assert mean(few)[1:] == (-math.inf, math.inf)
    # A thousand units, one of which has half of all lists.
    one = Moments.of(np.ones(1000), np.r_[999.0, np.ones(999)])
    assert one.effective_units < 4.1
    assert mean(one)[1:] == (-math.inf, math.inf)
    assert math.isnan(Moments().mean)
    assert difference(few, Moments())[1:] == (-math.inf, math.inf)


def test_the_sample_ratio_check_is_a_bayes_factor_whose_minimum_rarely_alarms() -> None:
    counts, shares = np.array([480, 620]), np.array([0.4, 0.6])
    ratio = np.exp(
        multinomial.logpmf(counts, 1100, shares)
        - dirichlet_multinomial.logpmf(counts, 1000.0 * shares, np.array(1100))
    )
    assert sample_ratio_p(counts.tolist(), [2.0, 3.0]) == pytest.approx(min(ratio, 1.0))
    rng, alarms = np.random.default_rng(12), 0
    for _ in range(300):
        first = rng.binomial(100, 0.5, 60).cumsum()
        days = np.arange(1, 61) * 100
        alarms += any(
            sample_ratio_p([a, n - a], [1.0, 1.0]) < 0.05 for a, n in zip(first, days, strict=True)
        )
    assert alarms <= 0.05 * 300
    assert sample_ratio_p([10_000, 10_700], [0.5, 0.5]) < 0.001


def test_arms_that_had_as_many_lists_rarely_alarm_and_others_do() -> None:
    rng, alarms = np.random.default_rng(14), 0
    for _ in range(200):
        pace, lists, seen = rng.gamma(0.5, size=(3, 300)), np.zeros((3, 300)), False
        for _ in range(30):
            lists += rng.poisson(pace)
            seen |= equal_lists_p([Moments.of(arm) for arm in lists]) < 0.05
        alarms += seen
    assert alarms <= 0.05 * 200
    lists[2] *= 0.6
    arms = [Moments.of(arm) for arm in lists]
    assert equal_lists_p(arms) < 0.01
    assert equal_lists_p(arms[:2]) > 0.05
    assert equal_lists_p([*arms, Moments.of(np.r_[1e5, np.zeros(299)])]) == 1.0, "one unit's lists"


def test_bad_input_is_named() -> None:
    with pytest.raises(ParameterError, match="same length"):
        Moments.of([1.0, 2.0], [1.0])
    with pytest.raises(ParameterError, match="finite"):
        Moments.of([math.nan])
    with pytest.raises(ParameterError, match="alpha"):
        mean(Moments.of(np.arange(99)), alpha=0.0)
    with pytest.raises(ParameterError, match="shares"):
        sample_ratio_p([1, 2], [1.0])


def test_a_a_experiments_peeked_at_daily_rarely_alarm() -> None:
    """Users come once and again, at rates of their own."""
    rng, n, runs = np.random.default_rng(13), 600, 200
    alarms = np.zeros((runs, 2), np.bool_)
    for alarm in alarms:
        treated, rate, begins = rng.random(n) < 0.5, rng.beta(2.0, 6.0, n), rng.integers(0, 30, n)
        clicks, lists = np.zeros((2, n))
        for day in range(30):
            today = rng.poisson(np.full(n, 0.4)) * (day >= begins)
            lists, clicks = lists + today, clicks + rng.binomial(today, rate)
            arms = [Moments.of(clicks[arm], lists[arm]) for arm in (treated, ~treated)]
            for at, gap in enumerate((difference(*arms), difference(*arms, looks="once"))):
                alarm[at] |= not gap.low <= 0.0 <= gap.high
    always, once = alarms.mean(axis=0)
    assert always <= 0.05
    assert once > 0.08, "the z-interval does not survive daily looks"


def test_units_that_are_all_alike_do_not_tell_how_far_others_differ() -> None:
    """Nobody has clicked yet, in a hundred lists of each arm: that is not certainty."""
    nobody, everybody, some = (Moments.of(np.arange(100) < clicks) for clicks in (0, 100, 30))
    for estimate, low, high in (mean(nobody), difference(nobody, nobody)):
        assert (estimate, low, high) == (0.0, -np.inf, np.inf)
    assert difference(everybody, nobody) == (1.0, -np.inf, np.inf)
    assert np.isfinite(difference(some, nobody)).all()
