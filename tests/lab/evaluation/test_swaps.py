"""Random swaps are drawn with the propensities that are logged, and weight clicks without bias."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import pytest

from ebrank.errors import ParameterError
from ebrank.lab.evaluation.swaps import (
    NO_PAIR,
    Swap,
    draw_swap,
    examination_curve,
    neighbor_moments,
    rank_propensity,
)
from ebrank.statistics.sequential import Moments, Rule, mean
from ebrank.typing import Floats

K, LISTS, SHARE = 4, 40_000, 0.6
SWAPS = [draw_swap(key, K, SHARE) for key in range(LISTS)]
ITEMS = np.array([swap.applied(range(K)) for swap in SWAPS])
"""By list and rank: those of one order, up to swaps."""
RANKS = np.arange(1, K + 1)
RELEVANCE, CURVE = np.array([0.9, 0.3, 0.6, 0.2]), RANKS**-0.8
CLICKS = np.random.default_rng(1).random((LISTS, K)) < RELEVANCE[ITEMS] * CURVE
PROPENSITIES = rank_propensity(ITEMS + 1, RANKS, ranks=K, share=SHARE)


def test_swaps_are_drawn_with_the_propensities_that_are_logged() -> None:
    for rank in RANKS:
        for item in RANKS:
            logged = rank_propensity(item, rank, ranks=K, share=SHARE)
            assert (ITEMS[:, rank - 1] == item - 1).mean() == pytest.approx(logged, abs=0.01)
    drawn = np.array([swap.pair for swap in SWAPS])
    assert (drawn == NO_PAIR).mean() == pytest.approx(1.0 - SHARE, abs=0.01)
    assert draw_swap(3, 1, 1.0) == draw_swap(3, K, 0.0) == Swap(NO_PAIR, False)
    assert Swap(3, True).applied([1, 2]) == [1, 2]
    with pytest.raises(ParameterError, match="share"):
        draw_swap(1, K, 1.5)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2]])
def test_clicks_over_propensities_are_those_of_another_order(order: list[int]) -> None:
    weighted = ((np.array(order) == ITEMS) * CLICKS / PROPENSITIES).sum(axis=1)
    low, high = mean(Moments.of(weighted), alpha=0.001, looks="once")[1:]
    assert low < RELEVANCE[order] @ CURVE < high


def test_swapped_neighbors_identify_the_curve_and_click_rates_do_not() -> None:
    ratios = neighbor_moments(PROPENSITIES, CLICKS)
    curve = examination_curve(ratios, looks="once", alpha=0.001)
    for p, (estimate, low, high) in zip(CURVE, curve, strict=True):
        assert low <= p <= high
        assert estimate == pytest.approx(p, rel=0.15)
    by_rank = CLICKS.mean(axis=0)
    assert abs(by_rank[1] / by_rank[0] - CURVE[1]) > 0.05
    nobody = neighbor_moments(np.full((3, 3), 0.9), np.zeros((3, 3)))
    assert all(np.isnan(p.estimate) for p in examination_curve(nobody)[1:]), "no clicks, no ends"
    with pytest.raises(ParameterError, match="two tables of lists"):
        neighbor_moments([0.5], PROPENSITIES)


def test_intervals_are_as_wide_as_curves_of_other_lists_differ() -> None:
    def curve(lists: slice, **rule: Unpack[Rule]) -> Floats:
        ratios = neighbor_moments(PROPENSITIES[lists], CLICKS[lists])
        return np.array(examination_curve(ratios, **rule)[1:])

    others = [curve(slice(part, None, 80))[:, 0] for part in range(80)]
    error = np.log(others).std(axis=0) / 80**0.5
    rules: tuple[Rule, ...] = ({"looks": "once", "alpha": 0.05}, {"alpha": 0.05})
    once, always = (np.log(curve(slice(None), **rule)) for rule in rules)
    assert (once[:, 2] - once[:, 1]) / (2 * 1.96) == pytest.approx(error, rel=0.25)
    assert np.all((always[:, 1] < once[:, 1]) & (once[:, 2] < always[:, 2]))
    drawn = np.array([swap.pair for swap in SWAPS])
    swapped = [CLICKS[drawn == upper, upper].sum() for upper in range(K - 1)]
    weights = [ratio.weight for ratio in neighbor_moments(PROPENSITIES, CLICKS)]
    assert weights == pytest.approx(swapped, rel=0.1), "kept lists are worth as many"
