from __future__ import annotations

import numpy as np
import pytest
import scipy

from ebrank.evaluation.significance import compare, holm
from ebrank.experiments.framework.measures import COLD, CUM, MEASURES, WARM, Measure
from ebrank.experiments.framework.significance import (
    Contrast,
    caution,
    contrast,
    lead,
    over_trials,
    pairwise,
    shares,
)
from tests.experiments.made import QUERIES, result

HIGH = result("ebrank", [(0.6, 0.8, 0.9)] * 2, noise=0.01)
LOW = result("bm25", [(0.5, 0.5, 0.5)] * 2, noise=0.01, seed=5)
NEAR = result("prior", [(0.6, 0.799, 0.899)] * 2, noise=0.3, seed=9)


def test_ahead_of_one_for_sure() -> None:
    found = lead(HIGH, {"low": LOW}, WARM)
    assert found.significant
    assert found.rival == "low"
    assert found.difference == pytest.approx(0.3)
    assert str(found) == "against low, adjusted p < .0001"
    assert found.verdict == "confirmed"


def test_ahead_of_all_only_if_of_the_nearest_too() -> None:
    found = lead(HIGH, {"low": LOW, "near": NEAR}, WARM)
    assert not found.significant
    assert found.rival == "near"
    assert found.difference == pytest.approx(0.001)
    p_values = [compare(HIGH, other, "warm_ndcg").p_value for other in (LOW, NEAR)]
    assert found.p_value == max(holm(p_values))
    assert (found.verdict, found.deciding) == ("undecided", "near")
    assert found.contrast.low is not None
    assert found.contrast.high is not None
    assert found.contrast.low < 0 < found.contrast.difference < found.contrast.high


def test_a_ranker_that_is_surely_behind_is_not_ahead() -> None:
    found = lead(LOW, {"high": HIGH}, CUM)
    assert found.p_value < 0.05
    assert not found.significant
    assert found.verdict == "contradicted"


def test_the_rival_that_decides_need_not_be_the_strongest() -> None:
    """The strongest is surely behind, but who is behind by more may be so by luck."""
    wild = result("prior", [(0.6, 0.77, 0.8)] * 2, noise=0.3, seed=9)
    calm = result("bm25", [(0.5, 0.78, 0.5)] * 2, noise=0.001, seed=5)
    found = lead(HIGH, {"calm": calm, "wild": wild}, WARM)
    assert (found.rival, found.deciding, found.verdict) == ("calm", "wild", "undecided")
    assert found.contrast.difference == pytest.approx(0.03)


def test_pairs_are_adjusted_together() -> None:
    found = pairwise({"a": (HIGH, LOW), "b": (HIGH, NEAR)}, COLD)
    plain = [compare(HIGH, other, "cold_ndcg") for other in (LOW, NEAR)]
    adjusted = holm([comparison.p_value for comparison in plain])
    for contrasted, expected, p in zip(found.values(), plain, adjusted, strict=True):
        assert contrasted.difference == pytest.approx(expected.difference)
        assert contrasted.p_value == p
    assert found["a"].p_value > plain[0].p_value


@pytest.mark.parametrize("measure", MEASURES)
def test_shares_of_queries_add_up_to_the_difference(measure: Measure) -> None:
    added = shares(HIGH, NEAR, measure)
    assert len(added) == QUERIES
    assert added.sum() == pytest.approx(measure.mean(HIGH) - measure.mean(NEAR))


def test_an_interval_is_students_over_queries() -> None:
    differences = np.random.default_rng(3).normal(0.2, 1.0, 60)
    found = contrast(differences / 60)
    expected = scipy.stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    trials = over_trials(differences[:5])
    student = scipy.stats.ttest_1samp(differences[:5], 0.0)
    assert trials.p_value == pytest.approx(student.pvalue)
    assert (trials.low, trials.high) == pytest.approx(tuple(student.confidence_interval(0.95)))


def test_an_interval_excludes_the_border_where_the_test_does() -> None:
    """Of many samples, only where p is at the very level may the two disagree."""
    rng = np.random.default_rng(1)
    apart = 0
    for _ in range(60):
        found = contrast(rng.normal(0.35, 1.0, 100) / 100, border=0.1)
        assert found.low is not None
        assert found.high is not None
        excluded = not found.low <= 0.1 <= found.high
        apart += excluded != (found.p_value < 0.05)
        assert excluded == (found.p_value < 0.05) or 0.04 < found.p_value < 0.06
    assert apart <= 2


def test_a_margin_is_what_is_tested_against() -> None:
    pairs = {"": (NEAR, HIGH)}
    assert pairwise(pairs, WARM)[""].verdict == "undecided"
    assert pairwise(pairs, WARM, border=-0.2)[""].verdict == "confirmed"
    assert pairwise(pairs, WARM, border=0.2)[""].verdict == "contradicted"


def test_the_level_is_that_of_holm() -> None:
    alone = pairwise({"b": (HIGH, NEAR)}, WARM)["b"]
    among = pairwise({"a": (HIGH, LOW), "b": (HIGH, NEAR), "c": (HIGH, LOW)}, WARM)["a"]
    single = pairwise({"a": (HIGH, LOW)}, WARM)["a"]
    assert alone.low is not None
    assert among.low is not None
    assert single.low is not None
    assert among.low < single.low


def test_one_query_or_one_trial_decides_nothing() -> None:
    assert contrast(np.array([0.3])).low is None
    found = over_trials(np.array([0.3]))
    assert (found.low, found.verdict) == (None, "undecided")
    assert over_trials(np.array([0.3, 0.3])).verdict == "confirmed"


def test_a_p_value_that_is_not_a_number_decides_nothing() -> None:
    assert Contrast(-0.1, None, None, float("nan")).verdict == "undecided"
    assert over_trials(np.array([0.3, np.nan])).verdict == "undecided"


@pytest.mark.parametrize(
    ("queries", "trials", "small"),
    [
        (100, 5, False),
        (99, 5, True),
        (1000, 4, True),
        (1, 1, True),
        (None, 5, False),
        (None, 4, True),
    ],
)
def test_few_queries_or_few_trials_are_small(queries: int | None, trials: int, small: bool) -> None:
    assert bool(caution(queries, trials)) is small


def test_it_says_how_many_there_were() -> None:
    assert caution(1, 1).startswith("1 test query, 1 trial: a small run")
    assert caution(1000, 2).startswith("1,000 test queries, 2 trials: a small run")
    assert caution(None, 2).startswith("2 trials: a small run")
