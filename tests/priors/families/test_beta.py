"""The Beta family: its prior, its losses and what it reports, by independent calculation."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as distributions

from ebrank.evidence import Sums
from ebrank.policy import make
from ebrank.priors import ItemPrior
from ebrank.priors.families.beta import Beta, beta_loss

numbers = st.floats(0, 200)
betas = st.floats(0.05, 100)


def sums_of(shown: float, clicks: float, exposure: float) -> Sums:
    return Sums(*(np.array([x]) for x in (shown, clicks, clicks, exposure)))


def test_alpha_is_the_exponential_of_the_score_and_beta_one_for_all() -> None:
    prior = Beta(beta=3.0).prior(np.array([-99.0, -1.0, 0.0, 2.0, 99.0]))
    np.testing.assert_allclose(prior.a, np.exp([-10.0, -1.0, 0.0, 2.0, 10.0]))
    assert prior.b.tolist() == [3.0]
    np.testing.assert_allclose(make(beta=3.0).prior_mean(prior), prior.a / (prior.a + 3.0))
    assert prior.rows(np.array([2])) == (np.array([1.0]), prior.b)
    apart = ItemPrior(np.arange(3.0), np.arange(3.0)).rows(slice(1, 3))
    assert apart.b.tolist() == [1.0, 2.0]


@given(st.floats(-9.99, 9.99), numbers, numbers, betas)
def test_loss_and_slope_in_high_precision(
    score: float, hits: float, trials: float, beta: float
) -> None:
    with mpmath.workdps(40):

        def exact(s: mpmath.mpf) -> mpmath.mpf:
            a, lg = mpmath.exp(s), mpmath.loggamma
            return lg(a) - lg(a + beta) - lg(hits + a) + lg(trials + a + beta)

        value, slope = float(exact(mpmath.mpf(score))), float(mpmath.diff(exact, score))
    loss, found = beta_loss(score, hits, trials, beta)
    assert loss == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert found == pytest.approx(slope, rel=1e-7, abs=1e-7)


@given(st.floats(10.001, 50), st.sampled_from([-1, 1]), numbers, numbers, betas)
def test_a_clipped_score_is_flat(
    score: float, sign: int, hits: float, trials: float, beta: float
) -> None:
    assert beta_loss(sign * score, hits, trials, beta) == (
        beta_loss(sign * 10.0, hits, trials, beta)[0],
        0.0,
    )


@given(st.floats(0.01, 50), betas, st.integers(0, 30), st.floats(0, 60))
def test_reported_loss_and_interval_are_those_of_a_proper_posterior(
    alpha: float, beta: float, clicks: int, exposure: float
) -> None:
    family, prior = Beta(beta=beta), ItemPrior(np.array([alpha]), np.array([beta]))
    sums = sums_of(99.0, float(clicks), exposure)
    misses = max(exposure - clicks, 0.0)
    loss = special.betaln(alpha, beta) - special.betaln(clicks + alpha, misses + beta)
    assert family.marginal_loss(prior, sums)[0] == pytest.approx(loss, rel=1e-9, abs=1e-9)
    low, high = family.interval(prior, sums, 0.8)
    expected = distributions.beta(clicks + alpha, misses + beta).interval(0.8)
    assert (low[0], high[0]) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_the_loss_of_a_coin_known_by_heart() -> None:
    """Beta(1, 1): c of n clicks, in some order, have probability 1/((n + 1) binomial(n, c))."""
    for c, n in ((0, 0), (0, 3), (2, 5), (4, 4)):
        chance = 1 / ((n + 1) * math.comb(n, c))
        found = Beta(beta=1.0).marginal_loss(
            ItemPrior(np.array([1.0]), np.array([1.0])), sums_of(n, c, n)
        )
        assert found[0] == pytest.approx(-math.log(chance))
