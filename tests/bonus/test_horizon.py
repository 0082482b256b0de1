from __future__ import annotations

import math

import numpy as np
import pytest

from ebrank import BehaviorStats, Examination
from ebrank.bonus.horizon import Horizon
from ebrank.policy import parse
from ebrank.priors import ItemPrior
from ebrank.scoring import scores
from tests.bound import unfitted


def test_it_is_worth_spread_times_boundary() -> None:
    s = 0.05**2 * 20 / (0.3 * 0.7)  # 0.24, in the second piece of the table
    expected = 0.05 * (0.49 - 0.11 / math.sqrt(s))
    assert Horizon.value(0.3, 0.05, 20.0) == pytest.approx(expected)


@pytest.mark.parametrize(("text", "horizon"), [("", 60.0), (",horizon=7", 7.0)])
def test_the_score_of_a_beta_posterior(text: str, horizon: float) -> None:
    """With 30 lists expected H is 60, unless given; the posterior is Beta(c + α, E − c + β)."""
    policy = parse(f"ebrank:bonus=horizon,estimator=exposure{text}")
    assert policy.plans == (text == "")
    stats = BehaviorStats.of(shown=[4, 0, 40], clicks=[2, 0, 3])
    prior = ItemPrior(np.array([1.0, 3.0, 0.5]), np.array([5.0]))
    found = scores(unfitted(policy, lists=30.0).score, prior, stats, Examination())
    for i, (shown, clicks) in enumerate([(4, 2), (0, 0), (40, 3)]):
        a, b = clicks + prior.a[i], shown - clicks + 5.0
        mean = a / (a + b)
        spread = math.sqrt(mean * (1 - mean) / (a + b + 1))
        assert found[i] == pytest.approx(mean + Horizon.value(mean, spread, horizon), rel=1e-9)
