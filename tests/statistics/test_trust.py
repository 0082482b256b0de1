"""How much features count in a score: by how far they move it, whatever kind of score it is."""

from __future__ import annotations

import numpy as np
import pytest

from ebrank.statistics.trust import embedded, trust
from ebrank.typing import Features, Floats

RNG = np.random.default_rng(3)
FEATURES = RNG.normal(scale=[1.0, 2.0, 3.0, 4.0], size=(2000, 4)).astype(np.float32)


def test_a_linear_score_shares_by_weight_times_spread() -> None:
    weights = np.array([2.0, -1.0, 0.0, 0.25])
    shares = trust(lambda x: x @ weights + 7.0, FEATURES, [[0], [1], [2], [3]])
    spread = np.abs(weights) * FEATURES.std(axis=0)
    assert shares == pytest.approx(spread / spread.sum(), rel=1e-4)


def test_columns_of_a_group_count_by_what_they_do_together() -> None:
    """Two columns that cancel each other out count for nothing, however large their weights are."""
    twice = np.hstack([FEATURES[:, :1], FEATURES[:, :1], FEATURES[:, 1:2]])
    weights = np.array([5.0, -5.0, 1.0])
    assert trust(lambda x: x @ weights, twice, [[0, 1], [2]]) == pytest.approx([0.0, 1.0], abs=1e-6)
    assert trust(lambda x: x @ weights, twice, [[0], [1], [2]])[0] > 0.4


def test_any_score_will_do_and_features_stay_as_they_are() -> None:
    before = FEATURES.copy()

    def steps(x: Features) -> Floats:
        return np.where((x[:, 0] > 0.5) & (x[:, 2] > 0.0), 1.0, 0.0)

    shares = trust(steps, FEATURES, [[0], [1], [2], [3]])
    assert shares[[1, 3]].tolist() == [0.0, 0.0]
    assert shares[0] > 0.3
    assert shares[2] > 0.2
    assert np.array_equal(FEATURES, before)


def test_where_scores_do_not_differ_nothing_counts() -> None:
    assert trust(lambda x: np.ones(len(x)), FEATURES, [[0], [1]]).tolist() == [0.0, 0.0]
    assert trust(lambda x: np.zeros(len(x)), FEATURES[:0], [[0]]).tolist() == [0.0]


def test_numbered_columns_are_one_embedding_where_they_are_many_among_others() -> None:
    vector = [f"bert[{place}]" for place in range(8)]
    assert embedded(["price", *vector, "top3"]) == {
        "price": [0],
        "bert": list(range(1, 9)),
        "top3": [9],
    }
    assert len(embedded(["price", *vector[:7]])) == 8
    assert len(embedded(vector)) == 8, "nothing but numbered columns: these are their names"
    assert embedded(["1", "2"]) == {"1": [0], "2": [1]}
