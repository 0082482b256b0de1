"""Preparation: what it keeps, what it drops, and the protocol's figures on real data."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebrank.data.dataset import SPLITS, Dataset
from ebrank.data.interpretation import ColumnChoices
from ebrank.data.preparation import MIN_CANDIDATES, prepare
from ebrank.errors import DataError


def dataset_of(
    sizes: list[int], splits: list[str], n_features: int = 3, seed: int = 0, max_label: int = 2
) -> Dataset:
    """A random dataset whose labels are never all zero."""
    rng = np.random.default_rng(seed)
    rows = sum(sizes)
    pointers = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    labels = rng.integers(0, max_label + 1, rows).astype(np.int8)
    labels[pointers[:-1]] = 1
    return Dataset(
        name="random",
        features=rng.normal(size=(rows, n_features)).astype(np.float32),
        labels=labels,
        query_pointers=pointers,
        query_ids=np.array([f"q{i}" for i in range(len(sizes))]),
        query_splits=np.array([SPLITS.index(split) for split in splits], dtype=np.int8),
        baseline=np.arange(rows, dtype=np.float32),
        feature_ids=np.arange(1, n_features + 1, dtype=np.int32),
        max_label=max_label,
    )


def splits_of(dataset: Dataset) -> tuple[int, ...]:
    return tuple(len(dataset.queries_in(split)) for split in SPLITS)


def test_queries_need_more_than_five_candidates() -> None:
    prepared = prepare(dataset_of([5, 6, 7, 5], ["train", "train", "vali", "vali"]))
    assert prepared.query_ids.tolist() == ["q1", "q2"]
    assert prepared.query_pointers.tolist() == [0, 6, 13]
    assert prepared.baseline.tolist() == list(range(5, 18))
    assert splits_of(prepared) == (1, 1, 0)


def test_only_test_queries_need_a_relevant_item() -> None:
    raw = dataset_of([6, 6, 6, 6], ["train", "train", "vali", "test"])
    raw.labels[:] = 0
    assert prepare(raw).query_ids.tolist() == ["q0", "q1", "q2"]
    raw.labels[-1] = 1
    assert prepare(raw).query_ids.tolist() == ["q0", "q1", "q2", "q3"]


def test_a_feature_that_differs_between_train_queries_only_is_dropped() -> None:
    raw = dataset_of([6, 6, 6], ["train", "train", "test"])
    raw.features[:6, 1] = 10.0
    raw.features[6:12, 1] = 20.0
    prepared = prepare(raw)
    assert prepared.feature_ids.tolist() == [1, 3]
    assert prepared.features.shape == (18, 2)


def test_small_train_queries_do_not_save_a_feature() -> None:
    raw = dataset_of([5, 6], ["train", "train"])
    raw.features[5:, 0] = 1.0  # varies only in the query that is removed
    assert prepare(raw).feature_ids.tolist() == [2, 3]


def test_a_feature_constant_in_one_query_becomes_zero_there() -> None:
    raw = dataset_of([6, 6], ["train", "vali"])
    raw.features[6:, 2] = 4.0
    prepared = prepare(raw)
    assert np.all(prepared.features[6:, 2] == 0)
    assert prepared.features[:6, 2].max() == 1


def test_the_number_of_features_alone_drops_nothing() -> None:
    prepared = prepare(dataset_of([6, 6], ["train", "test"], n_features=136, max_label=4))
    assert prepared.feature_ids.tolist() == list(range(1, 137))


def test_behavior_features_are_dropped_unless_others_are_given() -> None:
    raw = dataset_of([6, 6], ["train", "test"], n_features=136)
    raw = replace(raw, behavior_features=(134, 135, 136))
    prepared = prepare(raw)
    assert prepared.feature_ids.tolist() == list(range(1, 134))
    assert prepared.behavior_features == ()
    assert prepare(prepared).n_features == 133
    for nothing in ((), None):
        assert prepare(raw, drop_features=nothing).n_features == 136
    kept = prepare(raw, drop_features=(1, 136)).feature_ids.tolist()
    assert kept == list(range(2, 136))


def test_a_feature_must_be_left() -> None:
    with pytest.raises(DataError, match="all features of 'random' would be dropped"):
        prepare(dataset_of([6], ["train"]), drop_features=[1, 2, 3])


def test_feature_names_follow_their_features() -> None:
    raw = replace(dataset_of([6], ["train"]), feature_names=("a", "b", "c"))
    assert prepare(raw, drop_features=[2]).feature_names == ("a", "c")


@pytest.mark.parametrize(
    ("sizes", "splits"), [([5, 3], ["train", "test"]), ([5, 6], ["train", "test"])]
)
def test_no_training_query_left_is_an_error(sizes: list[int], splits: list[str]) -> None:
    with pytest.raises(DataError, match="no training query of 'random' has more than 5 candidates"):
        prepare(dataset_of(sizes, splits))


def test_no_feature_left_is_an_error() -> None:
    raw = dataset_of([6, 6], ["train", "test"])
    raw.features[:6] = 1.0
    with pytest.raises(DataError, match="every feature of 'random' is constant"):
        prepare(raw)


def test_the_source_is_left_as_it_was() -> None:
    raw = dataset_of([6, 6, 5], ["train", "test", "vali"])
    before = raw.features.copy()
    raw.features.flags.writeable = False
    prepare(raw)
    np.testing.assert_array_equal(raw.features, before)


@settings(deadline=None)
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
    prepared = prepare(raw, threads=2)
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


@pytest.mark.parametrize(
    ("fixture", "splits", "rows", "features"),
    [
        ("mq2008_folder", (469, 157, 105), 14_422, 40),
        ("mslr_sample_folder", (125, 18, 30), 18_972, 128),
    ],
)
def test_real_data_gives_the_figures_of_the_protocol(
    fixture: str, splits: tuple[int, ...], rows: int, features: int, request: pytest.FixtureRequest
) -> None:
    from ebrank.data import letor

    folder: Path = request.getfixturevalue(fixture)
    choices = {46: ColumnChoices(), 136: ColumnChoices(110, (134, 135, 136), 4)}
    raw = letor.read(folder, **asdict(choices[46 if features == 40 else 136]))
    prepared = prepare(raw)
    assert splits_of(prepared) == splits
    assert prepared.n_rows == rows
    assert prepared.n_features == features
    assert np.all((prepared.features >= 0) & (prepared.features <= 1))
    assert np.isin(prepared.baseline, raw.baseline).all()
