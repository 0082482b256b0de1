from __future__ import annotations

import math
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination, ParameterError
from ebrank.bonus import Bonus
from ebrank.policy.formula import loaded
from ebrank.policy.policies import make
from ebrank.priors import ItemPrior
from ebrank.priors.families.beta import Beta, beta_loss
from tests.bound import unfitted


@dataclass(frozen=True)
class OnlySpread(Bonus):
    """A bonus that is the posterior's spread."""

    name = "only_spread"
    help = "The spread."

    @staticmethod
    def value(spread: float) -> float:
        return spread


def test_the_prior_is_the_exponential_of_the_score_clipped() -> None:
    prior = Beta(beta=3.0).prior(np.array([-1e9, -1.0, 0.0, 1e9]))
    np.testing.assert_allclose(prior.a, np.exp([-10.0, -1.0, 0.0, 10.0]))
    np.testing.assert_array_equal(prior.b, [3.0])  # one for all items


@given(st.floats(0.05, 50), st.floats(0.05, 50))
def test_the_mean_by_scipy(alpha: float, beta: float) -> None:
    assert Beta.mean(alpha, beta) == pytest.approx(scipy.stats.beta(alpha, beta).mean())


@given(st.floats(-9.9, 9.9), st.floats(0, 60), st.floats(0, 60), st.floats(0.1, 50))
def test_the_loss_is_minus_log_of_the_marginal_likelihood_but_for_a_constant(
    score: float, hits: float, misses: float, beta: float
) -> None:
    def whole(score: float) -> float:
        alpha = math.exp(score)
        return float(
            scipy.special.betaln(alpha, beta) - scipy.special.betaln(hits + alpha, misses + beta)
        )

    trials = hits + misses
    loss, slope = beta_loss(score, hits, trials, beta)
    difference = loss - beta_loss(0.0, hits, trials, beta)[0]
    assert difference == pytest.approx(whole(score) - whole(0.0), rel=1e-7, abs=1e-7)
    up, down = (beta_loss(score + step, hits, trials, beta)[0] for step in (1e-4, -1e-4))
    assert slope == pytest.approx((up - down) / 2e-4, rel=1e-4, abs=1e-4)


@given(st.floats(-9.99, 9.99), st.floats(0, 200), st.floats(0, 200), st.floats(0.05, 100))
def test_loss_and_slope_in_high_precision_also_where_hits_exceed_trials(
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


@pytest.mark.parametrize("score", [-11.0, 11.0])
def test_a_clipped_score_has_no_slope(score: float) -> None:
    loss, slope = beta_loss(score, 3.0, 10.0, 5.0)
    assert slope == 0.0
    assert loss == pytest.approx(beta_loss(math.copysign(10.0, score), 3.0, 10.0, 5.0)[0])


def test_a_loss_is_finite_where_debiased_clicks_exceed_the_trials() -> None:
    loss, slope = beta_loss(0.5, 40.0, 2.0, 5.0)
    assert math.isfinite(loss)
    assert math.isfinite(slope)


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_relevance_and_spread_are_those_of_the_posterior(estimator: str) -> None:
    posterior = Beta.posteriors[estimator]
    law = scipy.stats.beta(3.0 + 2.0, 7.0 + 5.0)
    assert loaded(posterior.relevance)(3.0, 10.0, 2.0, 5.0) == pytest.approx(law.mean())
    spread = unfitted(make(estimator=estimator, bonus=f"{__name__}:OnlySpread")).score.formula(
        a=2.0, b=5.0, weighted_clicks=3.0, shown=10.0, clicks=3.0, exposure=10.0
    )
    assert spread - law.mean() == pytest.approx(law.std())


def test_interval_and_marginal_loss_are_those_of_plain_clicks_over_exposure() -> None:
    stats = BehaviorStats.of(shown=[[0, 20], [9, 0], [0, 3]], clicks=[[0, 4], [0, 0], [0, 3]])
    sums = stats.sums(Examination(curve=(1.0, 0.5)))  # E is 10, 9 and 1.5
    prior = ItemPrior(np.array([2.0, 1.0, 0.5]), np.array([5.0]))
    low, high = Beta().interval(prior, sums, level=0.8)
    losses = Beta().marginal_loss(prior, sums)
    for i, (alpha, c, misses) in enumerate([(2.0, 4, 6.0), (1.0, 0, 9.0), (0.5, 3, 0.0)]):
        law = scipy.stats.beta(c + alpha, misses + 5.0)
        assert (low[i], high[i]) == pytest.approx(law.interval(0.8))

        def likelihood(r: float, c: int = c, m: float = misses, a: float = alpha) -> float:
            return float(r**c * (1 - r) ** m * scipy.stats.beta.pdf(r, a, 5.0))

        mass = scipy.integrate.quad(likelihood, 0, 1)[0]
        assert losses[i] == pytest.approx(-math.log(mass), rel=1e-5)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), "5"])
def test_beta_must_be_positive(bad: float) -> None:
    with pytest.raises(ParameterError, match="beta takes a number"):
        Beta(beta=bad)
