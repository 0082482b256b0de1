from __future__ import annotations

import numpy as np

from ebrank import BehaviorStats, Examination
from ebrank.bonus.none import NoBonus
from ebrank.policy.policies import parse
from ebrank.policy.scoring import scores
from ebrank.priors import ItemPrior
from tests.bound import unfitted


def test_the_score_is_the_relevance() -> None:
    policy = parse("ebrank:bonus=none")
    assert (policy.bonus, NoBonus.value(), policy.noisy) == (NoBonus(), 0.0, False)
    prior = ItemPrior(np.array([1.0, 3.0]), np.array([5.0]))
    stats = BehaviorStats.of(shown=[4, 0], clicks=[2, 0])
    np.testing.assert_array_equal(
        scores(unfitted(policy).score, prior, stats, Examination()),
        scores(unfitted(policy).relevance, prior, stats, Examination()),
    )
