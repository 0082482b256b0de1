from __future__ import annotations

import math

import numpy as np
import pytest

from ebrank import BehaviorStats, Examination
from ebrank.bonus.horizon import lists_ahead
from ebrank.equations import horizon_bonus
from ebrank.policy.policies import parse
from ebrank.policy.scoring import scores
from ebrank.priors import ItemPrior
from tests.bound import unfitted


def test_plans_reach_as_far_ahead_as_half_of_the_past() -> None:
    assert lists_ahead(0) == lists_ahead(10) == 10.0
    assert lists_ahead(1000) == 1000.0


@pytest.mark.parametrize(("text", "horizon"), [("", 30.0), (",horizon=7", 7.0)])
def test_the_score_of_a_beta_posterior(text: str, horizon: float) -> None:
    """H is the lists to plan for, unless given; the posterior is Beta(c + α, E − c + β)."""
    policy = parse(f"ebrank:bonus=horizon,estimator=exposure{text}")
    assert policy.plans == (text == "")
    stats = BehaviorStats.of(shown=[4, 0, 40], clicks=[2, 0, 3])
    prior = ItemPrior(np.array([1.0, 3.0, 0.5]), np.array([5.0]))
    found = scores(unfitted(policy, lists=30.0).score, prior, stats, Examination())
    for i, (shown, clicks) in enumerate([(4, 2), (0, 0), (40, 3)]):
        a, b = clicks + prior.a[i], shown - clicks + 5.0
        mean = a / (a + b)
        spread = math.sqrt(mean * (1 - mean) / (a + b + 1))
        assert found[i] == pytest.approx(mean + horizon_bonus(mean, spread, horizon), rel=1e-9)
