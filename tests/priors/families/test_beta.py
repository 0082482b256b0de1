from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.priors.families.beta import Beta, beta_loss


def test_the_prior_is_the_exponential_of_the_score_clipped() -> None:
    prior = Beta(beta=3.0).prior(np.array([-1e9, -1.0, 0.0, 1e9]))
    np.testing.assert_allclose(prior.a, np.exp([-10.0, -1.0, 0.0, 10.0]))
    np.testing.assert_array_equal(prior.b, [3.0])  # one for all items


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
