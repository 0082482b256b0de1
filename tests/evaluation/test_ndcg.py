from __future__ import annotations

from itertools import pairwise, permutations
from math import inf, log2, nan

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from ebrank.errors import ParameterError
from ebrank.evaluation.ndcg import ndcg


def dcg(gains: list[float], cutoff: int) -> float:
    return sum(gain / log2(i + 2) for i, gain in enumerate(gains[:cutoff]))


def sorted_out(
    relevance: list[float], scores: list[float], keys: list[float], cutoff: int
) -> float:
    """NDCG of one query by the definition: the ideal list is the best of all orders."""
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], keys[row], row))
    gains = [relevance[row] for row in order if scores[row] != -inf]
    ideal = max(dcg(list(gains), cutoff) for gains in permutations(relevance))
    return dcg(gains, cutoff) / ideal if ideal > 0 else 1.0


ROW = st.tuples(
    st.sampled_from([0.0, 0.1, 0.4, 1.0]),
    st.sampled_from([-inf, -1.0, 0.0, 0.5, 2.0, inf]),
    st.sampled_from([0.0, 1.0, 2.0]),
)


@settings(deadline=None)  # the first call compiles
@given(
    queries=st.lists(st.lists(ROW, min_size=1, max_size=5), min_size=1, max_size=4),
    cutoff=st.integers(1, 7),
    keyed=st.booleans(),
)
def test_agrees_with_enumeration_of_all_orders(
    queries: list[list[tuple[float, float, float]]], cutoff: int, keyed: bool
) -> None:
    rows = np.array([row for query in queries for row in query])
    pointers = np.cumsum([0, *map(len, queries)])
    expected = []
    for query in queries:
        relevance, scores, keys = map(list, zip(*query, strict=True))
        expected.append(sorted_out(relevance, scores, keys if keyed else [0.0] * len(keys), cutoff))
    got = ndcg(
        rows[:, 0], rows[:, 1], pointers, cutoff=cutoff, tie_keys=rows[:, 2] if keyed else None
    )
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("cutoff", [1, 5, 10, 1000])
def test_agrees_with_scikit_learn_where_nothing_ties(cutoff: int) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 200, size=40)
    pointers = np.concatenate([[0], np.cumsum(sizes)])
    relevance = rng.random(pointers[-1])
    scores = rng.permutation(pointers[-1]).astype(np.float32)
    got = ndcg(relevance, scores, pointers, cutoff=cutoff)
    for query, (start, stop) in enumerate(pairwise(pointers)):
        expected = ndcg_score(relevance[None, start:stop], scores[None, start:stop], k=cutoff)
        assert got[query] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("cutoff", [1, 3, 5, 20])
def test_sorting_by_relevance_is_ideal_and_nothing_is_better(cutoff: int) -> None:
    rng = np.random.default_rng(1)
    relevance = rng.random(300)
    pointers = np.arange(0, 301, 10)
    np.testing.assert_array_equal(ndcg(relevance, relevance, pointers, cutoff=cutoff), 1.0)
    other = ndcg(relevance, rng.random(300), pointers, cutoff=cutoff)
    assert (other <= 1.0).all()
    assert other.mean() < 0.95


def test_chosen_queries_come_in_the_order_asked_for() -> None:
    rng = np.random.default_rng(2)
    relevance, scores = rng.random((2, 60))
    pointers = np.array([0, 7, 20, 21, 60])
    everything = ndcg(relevance, scores, pointers)
    some = ndcg(relevance, scores, pointers, queries=[3, 0, 3])
    np.testing.assert_array_equal(some, everything[[3, 0, 3]])
    assert ndcg(relevance, scores, pointers, queries=np.zeros(0, np.int64)).shape == (0,)


def test_ties_follow_the_keys_and_else_the_rows() -> None:
    relevance, scores = [0.1, 1.0], [7.0, 7.0]
    first_worse = (0.1 + 1.0 / log2(3)) / (1.0 + 0.1 / log2(3))
    assert ndcg(relevance, scores, [0, 2]) == pytest.approx([first_worse])
    assert ndcg(relevance, scores, [0, 2], tie_keys=[5, 4]) == pytest.approx([1.0])
    assert ndcg(relevance, scores, [0, 2], tie_keys=[4, 5]) == pytest.approx([first_worse])


def test_items_outside_the_list_count_only_for_the_ideal() -> None:
    assert ndcg([1.0, 0.5], [-inf, 0.0], [0, 2]) == pytest.approx([0.5 / (1.0 + 0.5 / log2(3))])
    assert ndcg([1.0, 0.5], [-inf, -inf], [0, 2]) == pytest.approx([0.0])


def test_a_query_without_anything_to_find_is_ideal_in_any_order() -> None:
    assert ndcg([0.0, 0.0, 0.2, 0.2], [1.0, 2.0, 1.0, 2.0], [0, 2, 4]).tolist() == [1.0, 1.0]


def test_nan_outside_the_chosen_queries_is_harmless() -> None:
    assert ndcg([1.0, 0.0, 1.0], [nan, 0.0, 1.0], [0, 1, 3], queries=[1]).tolist() == [1.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": [0.0, 1.0, nan, 2.0]}, "row 2 of query 1"),
        ({"scores": [0.0, 1.0]}, "scores .* 4 rows"),
        ({"relevance": [0.0, 1.0, -1.0, 0.0]}, "relevance .* not negative"),
        ({"relevance": [0.0, 1.0, nan, 0.0]}, "relevance .* finite"),
        ({"tie_keys": [0.0, 1.0, nan, 0.0]}, "tie_keys"),
        ({"cutoff": 0}, "cutoff"),
        ({"queries": [2]}, "from 0 to 1"),
        ({"queries": [-1]}, "from 0 to 1"),
        ({"query_pointers": [1, 4]}, "query_pointers"),
        ({"query_pointers": [0, 3, 2, 4]}, "query_pointers"),
        ({"query_pointers": []}, "query_pointers"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, npt.ArrayLike], message: str) -> None:
    good: dict[str, npt.ArrayLike] = {
        "relevance": [0.1, 1.0, 0.1, 0.4],
        "scores": [1.0, 2.0, 3.0, 4.0],
        "query_pointers": [0, 2, 4],
    }
    with pytest.raises(ParameterError, match=message):
        ndcg(**{**good, **changes})  # type: ignore[arg-type]
