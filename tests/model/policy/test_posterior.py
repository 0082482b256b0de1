"""Densities of relevance against SciPy, and against what the policy itself computes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from ebrank import BehaviorStats, EBRanker, Examination
from ebrank.typing import Features


def world() -> tuple[Features, BehaviorStats]:
    rng = np.random.default_rng(5)
    features = rng.random((200, 2), dtype=np.float32)
    shown = rng.integers(0, rng.choice([1, 2, 6, 50, 3000], (200, 1)), (200, 4))
    p = Examination()(np.arange(1, 5))
    return features, BehaviorStats.of(shown, rng.binomial(shown, rng.random((200, 1)) * p))


@pytest.mark.parametrize("policy", ["auto", "ebrank:estimator=exact", "ebrank:estimator=exposure"])
def test_curve_mean_and_interval_agree(policy: str) -> None:
    features, stats = world()
    ranking = EBRanker(policy).fit(features, stats).rank(features, stats)
    candidates = ranking.candidates.rows(ranking.order)
    spread = candidates.by(candidates.formulas.spread, np.arange(len(ranking)))
    possible = candidates.sums.clicks <= candidates.sums.exposure
    for at, points in enumerate(candidates.posterior_densities.points()):
        relevance, density = np.array(points).T
        below = scipy.integrate.cumulative_trapezoid(density, relevance, initial=0)
        assert below[-1] == pytest.approx(1.0, abs=0.03)
        mean = np.trapezoid(density * relevance, relevance)
        if possible[at]:
            assert mean / below[-1] == pytest.approx(ranking.relevance[at], abs=0.15 * spread[at])
        inside = np.diff(np.interp(ranking.interval[at], relevance, below))[0]
        assert inside == pytest.approx(0.9, abs=0.03)


def test_an_estimate_by_ips_is_the_mean_of_its_posterior() -> None:
    """One click at a low rank: plain clicks over exposure would put the interval elsewhere."""
    stats = BehaviorStats.of([[0, 0, 0, 10]], [[0, 0, 0, 3]])
    ranking = EBRanker("ebrank").rank(np.zeros((1, 1), np.float32), stats)
    low, high = ranking.interval[0]
    a, b = (numbers[0] for numbers in ranking.candidates.posterior_beta)
    assert a / (a + b) == pytest.approx(ranking.relevance[0])
    assert (low, high) == pytest.approx(scipy.stats.beta(a, b).interval(0.9))


def test_intervals_cover_what_they_say_if_prior_and_curve_are_known() -> None:
    """Whatever they miss in a log, they miss because both are estimated there."""
    rng, n = np.random.default_rng(71), 8000
    p = Examination()(np.arange(1, 6))
    shown = rng.integers(0, rng.choice([1, 2, 10, 100], (n, 1)), (n, 5))
    truth = rng.beta(1, 5, n)
    stats = BehaviorStats.of(shown, rng.binomial(shown, truth[:, None] * p))
    ranker = EBRanker("ebrank:estimator=exact,beta=5")
    ranking = ranker.rank(np.zeros((n, 1), np.float32), stats)
    low, high = ranking.interval.T
    covered = truth[ranking.order]
    assert np.mean(covered < low) == pytest.approx(0.05, abs=0.01)
    assert np.mean(covered > high) == pytest.approx(0.05, abs=0.01)
