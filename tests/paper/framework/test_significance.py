"""Leads and contrasts against the tests done one by one, and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from ebrank.lab.evaluation.significance import fisher_randomization, holm, query_differences
from ebrank.lab.simulation.result import Result
from ebrank.paper.framework.measures import COLD, CUM, MEASURES, WARM, Measure
from ebrank.paper.framework.significance import (
    Contrast,
    caution,
    contrast,
    lead,
    over_trials,
    pairwise,
    shares,
)
from tests.paper.made import QUERIES, result, sure

HIGH, LOW = sure("ebrank", 0.6, 0.8, 0.9), sure("bm25", 0.5, 0.5, 0.5, 5)
NEAR = result("prior", [(0.6, 0.799, 0.899)] * 2, noise=0.3, seed=9)
WILD = result("prior", [(0.6, 0.77, 0.8)] * 2, noise=0.3, seed=9)
CALM = result("bm25", [(0.5, 0.78, 0.5)] * 2, noise=0.001, seed=5)


def alone(a: Result, b: Result, measure: Measure) -> tuple[float, float]:
    """Return a difference and its p-value, tested by itself."""
    p_value = fisher_randomization(query_differences(a, b, measure.metric))
    return measure.mean(a) - measure.mean(b), p_value


@pytest.mark.parametrize(
    ("first", "rivals", "measure", "rival", "deciding", "verdict", "difference"),
    [
        (HIGH, {"low": LOW}, WARM, "low", "low", "confirmed", 0.3),
        (HIGH, {"low": LOW, "near": NEAR}, WARM, "near", "near", "undecided", 0.001),
        (LOW, {"high": HIGH}, CUM, "high", "high", "contradicted", -14.5),
        # the strongest is surely behind, but who is behind by more may be so by luck
        (HIGH, {"calm": CALM, "wild": WILD}, WARM, "calm", "wild", "undecided", 0.03),
    ],
)
def test_ahead_of_all_is_ahead_of_whoever_decides(
    first: Result,
    rivals: dict[str, Result],
    measure: Measure,
    rival: str,
    deciding: str,
    verdict: str,
    difference: float,
) -> None:
    ahead = lead(first, rivals, measure)
    assert (ahead.rival, ahead.deciding, ahead.verdict) == (rival, deciding, verdict)
    assert ahead.significant == (verdict == "confirmed")
    assert ahead.contrast.difference == pytest.approx(difference, rel=1e-2)
    assert str(ahead).startswith(f"against {deciding}, adjusted p ")
    p_values = [alone(first, other, measure)[1] for other in rivals.values()]
    ours = [each.p_value for each in ahead.rivals.values()]
    assert ours == pytest.approx(holm(p_values), rel=1e-12)


def test_pairs_are_adjusted_together_and_intervals_with_them() -> None:
    pairs = {"a": (HIGH, LOW), "b": (HIGH, NEAR)}
    tested = pairwise(pairs, COLD)
    differences, p_values = zip(*(alone(HIGH, other, COLD) for other in (LOW, NEAR)), strict=True)
    assert [each.p_value for each in tested.values()] == list(holm(p_values))
    assert [each.difference for each in tested.values()] == pytest.approx(differences)
    assert tested["a"].p_value > p_values[0]
    single, among = pairwise({"a": pairs["a"]}, WARM)["a"], pairwise(pairs, WARM)["a"]
    assert among.low is not None
    assert single.low is not None
    assert among.low < single.low


@pytest.mark.parametrize("measure", MEASURES)
def test_shares_of_queries_add_up_to_the_difference(measure: Measure) -> None:
    added = shares(HIGH, NEAR, measure)
    assert len(added) == QUERIES
    assert added.sum() == pytest.approx(measure.mean(HIGH) - measure.mean(NEAR))


def test_an_interval_is_students_over_queries() -> None:
    differences = np.random.default_rng(3).normal(0.2, 1.0, 60)
    ours = contrast(differences / 60)
    expected = scipy.stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high))
    trials = over_trials(differences[:5])
    student = scipy.stats.ttest_1samp(differences[:5], 0.0)
    assert trials.p_value == pytest.approx(student.pvalue)
    assert (trials.low, trials.high) == pytest.approx(tuple(student.confidence_interval(0.95)))


def test_an_interval_excludes_the_border_where_the_test_does() -> None:
    """Of many samples, only where p is at the very level may the two disagree."""
    rng = np.random.default_rng(1)
    apart = 0
    for _ in range(60):
        ours = contrast(rng.normal(0.35, 1.0, 100) / 100, border=0.1)
        assert ours.low is not None
        assert ours.high is not None
        excluded = not ours.low <= 0.1 <= ours.high
        apart += excluded != (ours.p_value < 0.05)
        assert excluded == (ours.p_value < 0.05) or 0.04 < ours.p_value < 0.06
    assert apart <= 2


@pytest.mark.parametrize(
    ("contrasted", "verdict"),
    [
        (pairwise({"": (NEAR, HIGH)}, WARM)[""], "undecided"),
        (pairwise({"": (NEAR, HIGH)}, WARM, border=-0.2)[""], "confirmed"),
        (pairwise({"": (NEAR, HIGH)}, WARM, border=0.2)[""], "contradicted"),
        # one query or one trial decides nothing
        (contrast(np.array([0.3])), "undecided"),
        (over_trials(np.array([0.3])), "undecided"),
        (over_trials(np.array([0.3, 0.3])), "confirmed"),
        # nor does a p-value that is not a number
        (Contrast(-0.1, None, None, float("nan")), "undecided"),
        (over_trials(np.array([0.3, np.nan])), "undecided"),
    ],
)
def test_a_margin_is_what_is_tested_against(contrasted: Contrast, verdict: str) -> None:
    assert contrasted.verdict == verdict


@pytest.mark.parametrize(
    ("queries", "trials", "said"),
    [
        (100, 5, ""),
        (None, 5, ""),
        (99, 5, "99 test queries, 5 trials: a small run"),
        (1000, 4, "1,000 test queries, 4 trials: a small run"),
        (1, 1, "1 test query, 1 trial: a small run"),
        (None, 4, "4 trials: a small run"),
    ],
)
def test_few_queries_or_few_trials_are_small(queries: int | None, trials: int, said: str) -> None:
    assert caution(queries, trials).partition(", which")[0] == said
