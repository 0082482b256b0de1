"""The draws follow the laws they should: Kolmogorov and Smirnov's test at one in a million."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from ebrank import streams
from ebrank.compiled import kernel
from ebrank.evidence import BehaviorStats, Examination
from ebrank.policy import parse
from ebrank.priors import ItemPrior
from ebrank.priors.families.beta_draw import gamma
from ebrank.scoring import scores

ROOT = np.uint64(streams.trial_key(3, 0))


@kernel
def gammas(key: np.uint64, shape: float, n: int) -> npt.NDArray[np.float64]:
    out = np.empty(n)
    for i in range(n):
        out[i] = gamma(streams.child(key, i), shape)
    return out


@kernel
def draws(  # type: ignore[no-untyped-def]
    score,
    key: np.uint64,
    a: float,
    b: float,
    clicks: float,
    exposure: float,
    n: int,
) -> npt.NDArray[np.float64]:
    out = np.empty(n)
    for i in range(n):
        out[i] = score(a, b, 0.0, clicks, 0.0, exposure, 0.0, 0.0, 0.0, streams.child(key, i))
    return out


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 2.5, 80.0])
def test_gamma_draws_follow_the_gamma_law(shape: float) -> None:
    sample = gammas(ROOT, shape, 20_000)
    assert stats.kstest(sample, stats.gamma(shape).cdf).pvalue > 1e-6


@pytest.mark.parametrize(("clicks", "exposure"), [(0.0, 0.0), (3.0, 10.0), (4.0, 2.0)])
def test_posterior_draws_follow_the_posterior(clicks: float, exposure: float) -> None:
    sample = draws(DRAW.compiled, ROOT, 1.3, 5.0, clicks, exposure, 20_000)
    posterior = stats.beta(clicks + 1.3, max(exposure - clicks, 0.0) + 5.0)
    assert stats.kstest(sample, posterior.cdf).pvalue > 1e-6


def test_tiny_priors_never_give_a_number_that_is_not_one() -> None:
    sample = draws(DRAW.compiled, ROOT, 1e-6, 1e-6, 0.0, 0.0, 2000)
    assert np.all((sample >= 0.0) & (sample <= 1.0))
