from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from ebrank.evidence import Sums
from ebrank.policy.formula import NOTHING
from ebrank.priors.base import ItemPrior
from ebrank.priors.families.beta import Beta, beta_loss


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
