from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from ebrank.evidence import BehaviorStats, Examination, Sums
from ebrank.kernels import streams
from ebrank.model.formula import NOTHING, ItemPrior
from ebrank.model.policy.policies import parse
from ebrank.model.prior.families.beta import Beta, beta_loss
from ebrank.model.scoring import scores
from ebrank.testing import plain
from ebrank.typing import Floats
from tests.bound import unfitted


def test_the_prior_is_the_exponential_of_the_score_clipped() -> None:
    prior = Beta(beta=3.0).prior(np.array([-1e9, -1.0, 0.0, 1e9]))
    np.testing.assert_allclose(prior.a, np.exp([-10.0, -1.0, 0.0, 10.0]))
    np.testing.assert_array_equal(prior.b, [3.0])  # one for all items


@pytest.mark.parametrize("score", [-11.0, 11.0])
def test_a_clipped_score_has_no_slope(score: float) -> None:
    loss, slope = beta_loss(score, 3.0, 10.0, 5.0)
    assert slope == 0.0
    assert loss == pytest.approx(beta_loss(math.copysign(10.0, score), 3.0, 10.0, 5.0)[0])


def test_the_density_of_logits_is_scipys_but_for_a_constant() -> None:
    alpha, beta, u = np.array([0.4, 6.0]), np.array([5.0, 2.0]), np.linspace(-7.0, 6.0, 9)
    found = Beta().log_prior(ItemPrior(alpha, beta), NOTHING, u)
    relevance = expit(u)
    expected = stats.beta(alpha[:, None], beta[:, None]).logpdf(relevance)
    expected += np.log(relevance * (1.0 - relevance))  # dR/du
    np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], rtol=1e-9)


def test_the_interval_is_scipys() -> None:
    clicks, exposure = np.array([3.0, 2.0]), np.array([9.0, 1.5])
    prior = ItemPrior(np.array([1.0, 2.0]), np.array([5.0]))
    found = Beta().interval(prior, Sums(exposure, clicks, clicks, exposure), 0.8)
    expected = stats.beta([4.0, 4.0], [11.0, 5.0]).interval(0.8)
    for ends, expected_ends in zip(found, expected, strict=True):
        np.testing.assert_allclose(ends, expected_ends)


# --- draws ----------------------------------------------------------------------------------------

ROOT = np.uint64(plain.trial_key(3, 0))


def draws(alpha: float, beta: float, clicks: int, impressions: int, n: int) -> Floats:
    """Return n scores of Thompson sampling of an item shown at rank 3, where p is one half."""
    behavior = BehaviorStats.of([[0, 0, impressions]] * n, [[0, 0, clicks]] * n)
    keys = np.array([streams.child(ROOT, i) for i in range(n)], np.uint64)
    prior = ItemPrior(np.full(n, alpha), np.array([beta]))
    return scores(unfitted(parse("thompson")).score, prior, behavior, Examination(), keys)


@pytest.mark.parametrize(("clicks", "impressions"), [(0, 0), (3, 20), (4, 4)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.3, 5.0), (0.3, 0.5), (1.0, 2.5), (80.0, 2.0)])
def test_posterior_draws_follow_the_posterior(
    alpha: float, beta: float, clicks: int, impressions: int
) -> None:
    """Kolmogorov and Smirnov's test at one in a million."""
    sample = draws(alpha, beta, clicks, impressions, 20_000)
    posterior = stats.beta(clicks + alpha, max(0.5 * impressions - clicks, 0.0) + beta)
    assert stats.kstest(sample, posterior.cdf).pvalue > 1e-6


def test_tiny_priors_never_give_a_number_that_is_not_one() -> None:
    sample = draws(1e-6, 1e-6, 0, 0, 2000)
    assert np.all((sample >= 0.0) & (sample <= 1.0))
