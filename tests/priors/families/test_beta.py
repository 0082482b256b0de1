from __future__ import annotations

import math

import numpy as np
import pytest

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
