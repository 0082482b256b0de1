"""What the papers prove of their choices, tried on the reference, which the engine agrees with."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank.lab.rankers.kernels import pairwise
from ebrank.lab.rankers.kernels.blocks import all_blocks
from ebrank.lab.rankers.toprank import PairCounts
from ebrank.testing import plain
from tests.kept import kept
from tests.lab.simulation.reference_online import (
    Pair,
    list_probability,
    pair_weight,
    preferred,
    team_draft,
    unit_vector,
)

write_log_tails = kept(pairwise.write_log_tails)
write_item_weights = kept(pairwise.write_item_weights)


def test_no_item_is_preferred_for_its_place_alone() -> None:
    """Equally relevant items, very unequal scores: PDGD's expected gradient is zero."""
    f, length, relevance = dict(enumerate([2.0, 0.0, -1.0, 0.5])), 3, 0.4
    p = [1.0, 0.6, 0.4]
    mean = [0.0] * len(f)
    for rows in itertools.permutations(f, length):
        for clicked in itertools.product([False, True], repeat=length):
            looked_at = zip(clicked, p, strict=True)
            chances = [q * relevance if c else 1 - q * relevance for c, q in looked_at]
            chance = list_probability(rows, f) * math.prod(chances)
            for better, worse in preferred(list(clicked), [True] * length):
                weight = chance * pair_weight(list(rows), f, better, worse)
                mean[rows[better]] += weight
                mean[rows[worse]] -= weight
    np.testing.assert_allclose(mean, 0.0, atol=1e-14)


@given(
    st.lists(st.sampled_from([-1e300, -800.0, 0.0, 1e-300, 709.0, 1e5, 1e300]), min_size=2),
    st.floats(-1e300, 1e300) | st.just(-math.inf),
    st.data(),
)
def test_compiled_weights_of_extreme_scores_stay_finite(
    listed: list[float], log_rest: float, data: st.DataObject
) -> None:
    n = len(listed)
    clicked = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    scores, tails, weights = np.array(listed), np.empty(n + 1), np.empty(n)
    write_log_tails(scores, n, log_rest, tails)
    write_item_weights(scores, tails, np.ones(n), clicked, n, weights)
    assert np.all(np.isfinite(weights))
    assert np.all(np.abs(weights) <= 0.25 * n)


def test_every_order_of_teams_is_as_likely_as_any_other() -> None:
    lists, count = [[0, 1, 2], [1, 2, 0], [2, 0, 1]], 12_000
    orders = Counter(tuple(team_draft(lists, 3, key)[1]) for key in range(count))
    assert set(orders) == set(itertools.permutations(range(3)))
    assert scipy.stats.chisquare(list(orders.values())).pvalue > 1e-3


def test_coordinates_on_the_sphere_in_space_are_uniform() -> None:
    """Archimedes: a sphere's shadow on an axis is uniform; in the plane it is an arcsine."""
    for n, law in ((3, scipy.stats.uniform(-1, 2)), (2, scipy.stats.arcsine(-1, 2))):
        points = np.array([unit_vector(plain.child(77, i), n) for i in range(20_000)])
        for axis in points.T:
            assert scipy.stats.kstest(axis, law.cdf).pvalue > 1e-3


def counts(better: list[Pair], n: int) -> PairCounts:
    """Return counts of n items of one query, where the first of each pair is known as better."""
    offsets = np.array([0, n * (n - 1) // 2])
    pairs = PairCounts(offsets, np.zeros(offsets[1], np.int32), np.zeros(offsets[1], np.int32))
    for i, j in better:
        place = max(i, j) * (max(i, j) - 1) // 2 + min(i, j)
        pairs.net[place], pairs.trials[place] = (9 if i > j else -9), -9
    return pairs


@pytest.mark.parametrize(
    ("better", "blocks"),
    [
        ([], [0, 0, 0, 0]),
        ([(3, 0)], [1, 0, 0, 0]),
        ([(3, 2), (2, 1), (1, 0)], [3, 2, 1, 0]),
        ([(0, 1), (0, 2), (1, 3), (2, 3)], [0, 1, 1, 2]),
        ([(0, 1), (1, 2), (2, 0)], [1, 1, 1, 0]),  # a circle below the first block
        ([(0, 1), (1, 2), (2, 3), (3, 0)], [0, 0, 0, 0]),
    ],
)
def test_blocks_hold_what_nothing_left_is_better_than(
    better: list[Pair], blocks: list[int]
) -> None:
    assert all_blocks(np.array([0, 4]), counts(better, 4)).tolist() == blocks
