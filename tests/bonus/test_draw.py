from __future__ import annotations

import numpy as np
import pytest
import scipy

from ebrank import BehaviorStats, Examination
from ebrank.bonus.draw import Draw
from ebrank.policy.policies import parse
from ebrank.policy.scoring import scores
from ebrank.priors import ItemPrior
from tests.bound import unfitted


def test_it_turns_the_relevance_into_the_draw() -> None:
    assert Draw.value(0.3, 0.8) == pytest.approx(0.5)
    assert Draw.noisy


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_the_score_is_a_draw_from_the_proper_posterior(estimator: str) -> None:
    policy = parse(f"ebrank:bonus=draw,estimator={estimator}")
    items = 5000
    stats = BehaviorStats.of(shown=[10] * items, clicks=[4] * items)
    prior = ItemPrior(np.full(items, 2.0), np.array([5.0]))
    keys = np.random.PCG64(1).random_raw(items)
    draws = scores(unfitted(policy).score, prior, stats, Examination(), keys)
    law = scipy.stats.beta(4 + 2, 6 + 5)
    assert scipy.stats.kstest(draws, law.cdf).pvalue > 1e-6
