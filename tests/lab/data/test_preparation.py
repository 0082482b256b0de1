"""Preparation: what it keeps, and what it drops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import DataError
from ebrank.lab.data.dataset import SPLITS, Dataset
from ebrank.lab.data.preparation import MIN_CANDIDATES, prepare
from ebrank.testing.datasets import tiny


def dataset_of(sizes: list[int], splits: list[str], n_features: int = 3, seed: int = 0) -> Dataset:
    """A random dataset whose labels are never all zero."""
    raw = tiny(
        seed,
        sizes,
        n_features=n_features,
        query_splits=np.array([SPLITS.index(split) for split in splits], np.int8),
        baseline=np.arange(sum(sizes), dtype=np.float32),
    )
    raw.labels[raw.query_pointers[:-1]] = 1
    return raw


def test_only_test_queries_need_a_relevant_item() -> None:
    raw = dataset_of([6, 6, 6, 6], ["train", "train", "vali", "test"])
    raw.labels[:] = 0
    assert prepare(raw).query_ids.tolist() == ["q0", "q1", "q2"]
    raw.labels[-1] = 1
    assert prepare(raw).query_ids.tolist() == ["q0", "q1", "q2", "q3"]


@pytest.mark.parametrize(
    ("sizes", "levels"),
    [
        ([6, 6], [10.0, 20.0]),  # it differs between training queries, but within none
        ([5, 6], [None, 1.0]),  # it varies only in a query that is removed
    ],
)
def test_a_feature_that_varies_in_no_training_query_is_dropped(
    sizes: list[int], levels: list[float | None]
) -> None:
    raw = dataset_of([*sizes, 6], ["train", "train", "test"])
    for query, level in enumerate(levels):
        if level is not None:
            raw.features[raw.rows_of(query), 1] = level
    assert prepare(raw).feature_ids.tolist() == [1, 3]


def test_a_feature_constant_in_one_query_becomes_zero_there() -> None:
    raw = dataset_of([6, 6], ["train", "vali"])
    raw.features[6:, 2] = 4.0
    prepared = prepare(raw)
    assert np.all(prepared.features[6:, 2] == 0)
    assert prepared.features[:6, 2].max() == 1


def test_behavior_features_are_dropped_unless_others_are_given() -> None:
    plain = dataset_of([6, 6], ["train", "test"], n_features=136)
    assert prepare(plain).n_features == 136, "the number of features alone drops nothing"
    raw = replace(plain, behavior_features=(134, 135, 136))
    prepared = prepare(raw)
    assert prepared.feature_ids.tolist() == list(range(1, 134))
    assert prepared.behavior_features == ()
    assert prepare(prepared).n_features == 133
    for nothing in ((), None):
        assert prepare(raw, drop_features=nothing).n_features == 136
    kept = prepare(raw, drop_features=(1, 136)).feature_ids.tolist()
    assert kept == list(range(2, 136))


def test_what_leaves_nothing_is_an_error() -> None:
    for small in ([5, 3], [5, 6]):
        with pytest.raises(DataError, match="no training query of 'tiny' has more than 5 cand"):
            prepare(dataset_of(small, ["train", "test"]))
    raw = dataset_of([6, 6], ["train", "test"])
    with pytest.raises(DataError, match="all features of 'tiny' would be dropped"):
        prepare(raw, drop_features=[1, 2, 3])
    raw.features[:6] = 1.0
    with pytest.raises(DataError, match="every feature of 'tiny' is constant"):
        prepare(raw)


def test_the_source_is_left_as_it_was() -> None:
    raw = dataset_of([6, 6, 5], ["train", "test", "vali"])
    before = raw.features.copy()
    raw.features.flags.writeable = False
    prepare(raw)
    np.testing.assert_array_equal(raw.features, before)


@given(
    st.lists(
        st.tuples(st.integers(1, 12), st.sampled_from(SPLITS)), min_size=1, max_size=12
    ).filter(lambda queries: any(n >= MIN_CANDIDATES and s == "train" for n, s in queries)),
    st.integers(0, 99),
)
def test_remaining_rows_keep_their_labels_scores_and_order(
    queries: list[tuple[int, str]], seed: int
) -> None:
    raw = dataset_of([n for n, _ in queries], [s for _, s in queries], seed=seed)
    prepared = prepare(raw)
    names = raw.query_ids.tolist()
    kept = [names.index(query) for query in prepared.query_ids]
    assert kept == [i for i, (n, _) in enumerate(queries) if n >= MIN_CANDIDATES]
    for new, old in enumerate(kept):
        rows, source = prepared.rows_of(new), raw.rows_of(old)
        np.testing.assert_array_equal(prepared.labels[rows], raw.labels[source])
        np.testing.assert_array_equal(prepared.baseline[rows], raw.baseline[source])
        np.testing.assert_array_equal(
            np.argsort(prepared.features[rows], axis=0, kind="stable"),
            np.argsort(raw.features[source], axis=0, kind="stable"),
        )
        assert prepared.query_splits[new] == raw.query_splits[old]
