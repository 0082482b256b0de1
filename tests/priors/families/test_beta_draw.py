"""The draws follow the laws they should: Kolmogorov and Smirnov's test at one in a million."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy

from ebrank.evidence import BehaviorStats, Examination
from ebrank.kernels import streams
from ebrank.kernels.compiled import kernel
from ebrank.policy.policies import parse
from ebrank.policy.scoring import scores
from ebrank.priors import ItemPrior
from ebrank.priors.families.beta_draw import gamma
from ebrank.testing import plain
from tests.bound import unfitted

ROOT = np.uint64(plain.trial_key(3, 0))


@kernel
def gammas(key: np.uint64, shape: float, n: int) -> npt.NDArray[np.float64]:
    out = np.empty(n)
    for i in range(n):
        out[i] = gamma(streams.child(key, i), shape)
    return out


def draws(
    alpha: float, beta: float, clicks: int, impressions: int, n: int
) -> npt.NDArray[np.float64]:
    """Return n scores of Thompson sampling of an item shown at rank 3, where p is one half."""
    stats = BehaviorStats.zeros(n, slots=3)
    stats.counts[:, 0, 2], stats.counts[:, 1, 2] = impressions, clicks
    keys = np.array([streams.child(ROOT, i) for i in range(n)], np.uint64)
    prior = ItemPrior(np.full(n, alpha), np.array([beta]))
    return scores(unfitted(parse("thompson")).score, prior, stats, Examination(), keys)


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 2.5, 80.0])
def test_gamma_draws_follow_the_gamma_law(shape: float) -> None:
    sample = gammas(ROOT, shape, 20_000)
    assert scipy.stats.kstest(sample, scipy.stats.gamma(shape).cdf).pvalue > 1e-6


@pytest.mark.parametrize(("clicks", "impressions"), [(0, 0), (3, 20), (4, 4)])
def test_posterior_draws_follow_the_posterior(clicks: int, impressions: int) -> None:
    sample = draws(1.3, 5.0, clicks, impressions, 20_000)
    posterior = scipy.stats.beta(clicks + 1.3, max(0.5 * impressions - clicks, 0.0) + 5.0)
    assert scipy.stats.kstest(sample, posterior.cdf).pvalue > 1e-6


def test_tiny_priors_never_give_a_number_that_is_not_one() -> None:
    sample = draws(1e-6, 1e-6, 0, 0, 2000)
    assert np.all((sample >= 0.0) & (sample <= 1.0))
