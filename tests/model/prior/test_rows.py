from __future__ import annotations

import numpy as np
import pytest

from ebrank import Examination
from ebrank.model.policy.policies import make
from ebrank.model.prior.families.beta import beta_loss
from ebrank.model.prior.rows import BLOCK
from tests.model.prior.made_up import made_up


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [5, BLOCK + 7])
def test_losses_and_slopes_are_the_family_s_row_by_row(count: int, threads: int) -> None:
    features, stats = made_up(count, 2, seed=1)
    rows = make(beta=3.0).prior.rows(features, stats, Examination(), threads)
    scores = np.linspace(-3, 3, count)
    losses, slopes = rows.losses_and_slopes(scores)
    for i in [*range(5), count - 1]:
        expected = (0.0, 0.0)
        if stats.shown[i] > 0:
            hits, trials = rows.evidence[i]
            expected = beta_loss(float(scores[i]), float(hits), float(trials), 3.0)
        assert (losses[i], slopes[i]) == pytest.approx(expected, rel=1e-12, abs=1e-12)


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
