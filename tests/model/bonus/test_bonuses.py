"""What each bonus adds to the relevance of three items with a Beta posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy

from ebrank import BehaviorStats, Examination
from ebrank.equations import horizon_bonus
from ebrank.model.bonus.horizon import lists_ahead
from ebrank.model.policy.policies import parse
from ebrank.model.prior import ItemPrior
from ebrank.model.scoring import scores
from tests.bound import unfitted

ITEMS = [(4, 2), (0, 0), (40, 3)]
"""Impressions at the first rank, and clicks."""
ALPHA, BETA = np.array([1.0, 3.0, 0.5]), 5.0


def marginal_certainty(law: Any, shown: int) -> float:  # noqa: ANN401 (a distribution)
    """Return 20 times what one more look takes from R̂/(E + α + β), the bound of the variance."""
    rest = sum(law.args) - shown
    return -20.0 * float(mpmath.diff(lambda e: law.mean() / (e + rest), shown))


@pytest.mark.parametrize(
    ("text", "bonus"),
    [
        ("bonus=none", lambda law, shown: 0.0),
        ("epsilon=20", marginal_certainty),
        ("bonus=upper,width=0", lambda law, shown: 0.0),
        ("bonus=upper,width=1.5", lambda law, shown: 1.5 * law.std()),
        ("bonus=horizon", lambda law, shown: horizon_bonus(law.mean(), law.std(), 30.0)),
        ("bonus=horizon,horizon=7", lambda law, shown: horizon_bonus(law.mean(), law.std(), 7.0)),
    ],
)
def test_the_score_is_the_posterior_mean_plus_the_bonus(
    text: str, bonus: Callable[[Any, int], float]
) -> None:
    """H is the lists to plan for, here 30, unless it is given."""
    policy = parse(f"ebrank:estimator=exposure,{text}")
    assert not policy.noisy
    assert policy.plans == (text == "bonus=horizon")
    stats = BehaviorStats.of(*zip(*ITEMS, strict=True))
    prior = ItemPrior(ALPHA, np.array([BETA]))
    found = scores(unfitted(policy, lists=30.0).score, prior, stats, Examination())
    for i, (shown, clicks) in enumerate(ITEMS):
        law = scipy.stats.beta(clicks + ALPHA[i], shown - clicks + BETA)
        assert found[i] == pytest.approx(law.mean() + bonus(law, shown), rel=1e-9)


def test_plans_reach_as_far_ahead_as_the_past() -> None:
    assert lists_ahead(0) == lists_ahead(10) == 10.0
    assert lists_ahead(1000) == 1000.0
