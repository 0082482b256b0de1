"""The library's compiled scores: those of NumPy, also for views, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination, ParameterError
from ebrank.evidence import CLICKS, Behaviors
from ebrank.formula import Formula
from ebrank.policy import make
from ebrank.priors import ItemPrior
from ebrank.scoring import scores
from tests.evidence.logs import SHOP, curves, long_log, recorded

QUANTITIES = ("shown", "clicks", "weighted_clicks", "exposure")


def total(
    a: float, b: float, shown: float, clicks: float, weighted_clicks: float, exposure: float
) -> float:
    return a + 2 * b + 3 * shown + 5 * clicks + 7 * weighted_clicks + 11 * exposure


TOTAL = Formula(total).bind()


@given(st.integers(0, 10**6), st.sampled_from([CLICKS, SHOP]), curves, st.booleans())
def test_a_score_reads_the_same_sums_as_numpy(
    seed: int, behaviors: Behaviors, curve: Examination, alike: bool
) -> None:
    stats = recorded(long_log(seed, 30, behaviors), 30, behaviors)
    rng = np.random.default_rng(seed)
    prior = ItemPrior(rng.random(30), rng.random(1 if alike else 30))
    expected = TOTAL.formula(a=prior.a, b=prior.b, **stats.sums(curve)._asdict())
    np.testing.assert_allclose(scores(TOTAL, prior, stats, curve), expected, rtol=1e-14)


def test_views_score_like_the_whole() -> None:
    stats = recorded(long_log(1, 30), 30)
    policy = make("ebrank", estimator="exposure")
    prior = ItemPrior(np.linspace(0.1, 3, 30), np.array([5.0]))
    whole = scores(policy.score, prior, stats, Examination())
    for chosen in (slice(4, 25, 3), slice(None, None, -1), np.array([7, 7, 2])):
        part = scores(policy.score, prior.rows(chosen), stats[chosen], Examination())
        np.testing.assert_array_equal(part, whole[chosen])
    apart = BehaviorStats(np.asfortranarray(stats.counts))
    np.testing.assert_array_equal(scores(policy.score, prior, apart, Examination()), whole)


def test_what_does_not_fit_is_refused() -> None:
    stats, prior = BehaviorStats.zeros(3), ItemPrior(np.ones(3), np.ones(1))
    for wrong in (ItemPrior(np.ones(2), np.ones(1)), ItemPrior(np.ones(3), np.ones(2))):
        with pytest.raises(ParameterError, match="not one of 3 items"):
            scores(TOTAL, wrong, stats, Examination())
    with pytest.raises(ParameterError, match="2 keys for 3 items"):
        scores(TOTAL, prior, stats, Examination(), np.zeros(2, np.uint64))


def test_no_items_have_no_scores() -> None:
    prior = ItemPrior(np.ones(0), np.ones(1))
    assert scores(TOTAL, prior, BehaviorStats.zeros(0), Examination()).shape == (0,)
