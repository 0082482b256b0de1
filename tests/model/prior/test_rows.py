from __future__ import annotations

import numpy as np

from ebrank import Examination
from ebrank.model.policy.policies import make
from tests.model.prior.made_up import made_up


def test_a_subset_counts_only_what_was_chosen_and_counted_before() -> None:
    features, stats = made_up(50, 2, seed=3)
    rows = make(min_impressions=2).prior.rows(features, stats, Examination())
    np.testing.assert_array_equal(rows.included, stats.shown > 2)
    assert rows.count == np.count_nonzero(stats.shown > 2)
    chosen = np.arange(50) % 2 == 0
    part = rows.subset(chosen)
    np.testing.assert_array_equal(part.included, (stats.shown > 2) & chosen)
    assert np.shares_memory(part.features, rows.features)
    scores = np.ones(50)
    (whole, _), (some, _) = rows.losses_and_slopes(scores), part.losses_and_slopes(scores)
    np.testing.assert_array_equal(some, np.where(part.included, whole, 0.0))
