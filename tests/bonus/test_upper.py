from __future__ import annotations

import numpy as np
import pytest
import scipy

from ebrank import BehaviorStats, Examination
from ebrank.policy.policies import parse
from ebrank.policy.scoring import scores
from ebrank.priors import ItemPrior
from tests.bound import unfitted


@pytest.mark.parametrize("width", [0.0, 1.5])
def test_the_score_is_mean_plus_deviations_of_the_posterior(width: float) -> None:
    policy = parse(f"ebrank:bonus=upper,estimator=exposure,width={width}")
    assert not policy.noisy
    stats = BehaviorStats.of(shown=[4, 0, 40], clicks=[2, 0, 3])
    prior = ItemPrior(np.array([1.0, 3.0, 0.5]), np.array([5.0]))
    found = scores(unfitted(policy).score, prior, stats, Examination())
    for i, (shown, clicks) in enumerate([(4, 2), (0, 0), (40, 3)]):
        law = scipy.stats.beta(clicks + prior.a[i], shown - clicks + 5.0)
        assert found[i] == pytest.approx(law.mean() + width * law.std())
