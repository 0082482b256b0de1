"""Off-policy estimates and examination from swaps, against the truth of simulated users."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from ebrank.errors import ParameterError
from ebrank.evaluation.off_policy import (
    NO_PAIR,
    Swap,
    draw_swap,
    examination_curve,
    importance,
    ips,
    neighbor_moments,
    rank_propensity,
)
from ebrank.evaluation.sequential import Moments, mean
from ebrank.evidence import Examination
from ebrank.simulation.users import PositionBased
from ebrank.testing.users import shown
from ebrank.typing import Floats, Ints

K, LISTS, SHARE = 4, 40_000, 0.6
RELEVANCE = np.array([[0.9, 0.3, 0.6, 0.2], [0.5, 0.7, 0.1, 0.4], [0.2, 0.3, 0.4, 0.8]])
CURVE = Examination(severity=1.3)(np.arange(1, K + 1))


class Log(NamedTuple):
    """Lists of three queries, whose items are served in their order up to swaps."""

    queries: Ints
    pairs: Ints
    items: Ints
    clicks: Floats


@cache
def simulated() -> Log:
    """Return what the simulator's users do with lists with swaps."""
    rng, users = np.random.default_rng(1), PositionBased(Examination(severity=1.3))
    queries = rng.integers(0, len(RELEVANCE), LISTS)
    swaps = [draw_swap(key, K, SHARE) for key in range(LISTS)]
    items = np.array([swap.applied(range(K)) for swap in swaps])
    clicks, never = np.zeros((LISTS, K)), np.zeros(K)
    minds, keys = rng.random((LISTS, K)), rng.integers(2**63, size=LISTS).astype(np.uint64)
    for place in range(LISTS):
        relevance = RELEVANCE[queries[place], items[place]]
        outcomes = shown(
            users.browse.compiled, relevance, never, CURVE, minds[place], K, keys[place]
        )
        clicks[place] = outcomes[:K]
    return Log(queries, np.array([swap.pair for swap in swaps]), items, clicks)


def value(order: list[int]) -> float:
    """Return the true expected clicks of an order."""
    return float((CURVE * RELEVANCE[:, order]).sum(axis=1).mean())


def test_swaps_are_drawn_with_the_propensities_that_are_logged() -> None:
    items = simulated().items
    for rank in range(1, K + 1):
        for item in range(1, K + 1):
            logged = rank_propensity(item, rank, ranks=K, share=SHARE)
            assert (items[:, rank - 1] == item - 1).mean() == pytest.approx(logged, abs=0.01)
    assert (simulated().pairs == NO_PAIR).mean() == pytest.approx(1.0 - SHARE, abs=0.01)
    assert draw_swap(3, 1, 1.0) == draw_swap(3, K, 0.0) == Swap(NO_PAIR, False)
    assert Swap(3, True).applied([1, 2]) == [1, 2]
    with pytest.raises(ParameterError, match="share"):
        draw_swap(1, K, 1.5)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2], [1, 0, 3, 2]])
def test_estimates_of_orders_within_reach_are_those_of_the_simulator(order: list[int]) -> None:
    log, ranks = simulated(), np.arange(1, K + 1)
    logged = rank_propensity(log.items + 1, ranks, ranks=K, share=SHARE)
    values = ips(log.clicks, importance(log.items == np.array(order), logged))
    low, high = mean(Moments.of(values), alpha=0.001, looks="once")[1:]
    assert low < value(order) < high


def test_with_the_curve_any_order_is_within_reach() -> None:
    log, ranks, order = simulated(), np.arange(1, K + 1), [3, 2, 1, 0]
    rank_of = np.argsort(order)
    expected = sum(
        rank_propensity(log.items + 1, rank, ranks=K, share=SHARE) * CURVE[rank - 1]
        for rank in ranks
    )
    values = ips(log.clicks, importance(CURVE[rank_of[log.items]], expected))
    low, high = mean(Moments.of(values), alpha=0.001, looks="once")[1:]
    assert low < value(order) < high
    assert high - low < 0.2


def test_swapped_neighbors_identify_the_curve_and_click_rates_do_not() -> None:
    log = simulated()
    logged = rank_propensity(log.items + 1, np.arange(1, K + 1), ranks=K, share=SHARE)
    ratios = neighbor_moments(logged, log.clicks)
    curve = examination_curve(ratios, looks="once", alpha=0.001)
    for p, (estimate, low, high) in zip(CURVE / CURVE[0], curve, strict=True):
        assert low <= p <= high
        assert estimate == pytest.approx(p, rel=0.15)
    drawn = [log.clicks[log.pairs == upper, upper].sum() for upper in range(K - 1)]
    assert [ratio.weight for ratio in ratios] == pytest.approx(drawn, rel=0.1), "worth as many"
    by_rank = log.clicks.mean(axis=0)
    assert abs(by_rank[1] / by_rank[0] - CURVE[1] / CURVE[0]) > 0.05
    always = examination_curve(ratios, alpha=0.001)
    assert all(a.low <= b.low and b.high <= a.high for a, b in zip(always, curve, strict=True))


def test_a_curve_without_clicks_has_no_ends() -> None:
    ratios = neighbor_moments(np.full((3, 3), 0.9), np.zeros((3, 3)))
    assert all(np.isnan(p.estimate) for p in examination_curve(ratios)[1:])


def test_bad_input_is_named() -> None:
    table = np.full((2, 3), 0.5)
    with pytest.raises(ParameterError, match="above 0"):
        importance(table, np.zeros((2, 3)))
    with pytest.raises(ParameterError, match="two tables"):
        importance(table, table[0])
    with pytest.raises(ParameterError, match="two tables of lists"):
        neighbor_moments([0.5], table)
