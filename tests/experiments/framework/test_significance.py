from __future__ import annotations

import pytest

from ebrank.evaluation.significance import compare, holm
from ebrank.experiments.framework.measures import COLD, CUM, WARM
from ebrank.experiments.framework.significance import caution, lead, pairwise
from tests.experiments.made import result

HIGH = result("ebrank", [(0.6, 0.8, 0.9)] * 2, noise=0.01)
LOW = result("bm25", [(0.5, 0.5, 0.5)] * 2, noise=0.01, seed=5)
NEAR = result("prior", [(0.6, 0.799, 0.899)] * 2, noise=0.3, seed=9)


def test_ahead_of_one_for_sure() -> None:
    found = lead(HIGH, {"low": LOW}, WARM)
    assert found.significant
    assert found.rival == "low"
    assert found.difference == pytest.approx(0.3)
    assert str(found) == "+.300 in Warm-NDCG against low, largest adjusted p < .0001"


def test_ahead_of_all_only_if_of_the_nearest_too() -> None:
    found = lead(HIGH, {"low": LOW, "near": NEAR}, WARM)
    assert not found.significant
    assert found.rival == "near"
    assert found.difference == pytest.approx(0.001)
    p_values = [compare(HIGH, other, "warm_ndcg").p_value for other in (LOW, NEAR)]
    assert found.p_value == max(holm(p_values))


def test_who_is_behind_is_not_ahead_however_sure_that_is() -> None:
    found = lead(LOW, {"high": HIGH}, CUM)
    assert found.p_value < 0.05
    assert not found.significant


def test_pairs_are_adjusted_together() -> None:
    found = pairwise({"a": (HIGH, LOW), "b": (HIGH, NEAR)}, COLD)
    plain = [compare(HIGH, other, "cold_ndcg") for other in (LOW, NEAR)]
    adjusted = holm([comparison.p_value for comparison in plain])
    for (difference, p_value), expected, p in zip(found.values(), plain, adjusted, strict=True):
        assert difference == expected.difference
        assert p_value == p
    assert found["a"][1] > plain[0].p_value


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
    assert caution(1, 1).startswith("1 test query, 1 trial: too few")
    assert caution(1000, 2).startswith("1,000 test queries, 2 trials: too few")
    assert caution(None, 2).startswith("2 trials: too few")
