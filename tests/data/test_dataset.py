"""A `Dataset` that exists is valid: what the constructor refuses, and how it says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ebrank.data.dataset import Dataset
from ebrank.errors import DataError


def arrays() -> dict[str, Any]:
    """Two queries of two and three items, two features."""
    return {
        "name": "mine",
        "features": np.arange(10, dtype=np.float32).reshape(5, 2),
        "labels": np.array([0, 1, 2, 0, 1], np.int8),
        "query_pointers": np.array([0, 2, 5]),
        "query_ids": np.array(["tea", "coffee"]),
        "query_splits": np.array([0, 2], np.int8),
        "baseline": np.linspace(0, 1, 5, dtype=np.float32),
        "feature_ids": np.array([1, 4], np.int32),
        "max_label": 2,
    }


def refusal(**changes: object) -> DataError:
    """Return the error for the same dataset with other arrays."""
    with pytest.raises(DataError) as error:
        Dataset(**(arrays() | changes))
    assert error.value.problem.startswith("dataset 'mine': ")
    assert error.value.remedy.endswith(".")
    return error.value


def changed(name: str, index: int | tuple[int, ...], value: object) -> Any:  # noqa: ANN401
    array = arrays()[name].copy()
    array[index] = value
    return array


def test_valid_arrays_are_taken_as_they_are() -> None:
    given = arrays()
    dataset = Dataset(**given)
    assert all(getattr(dataset, name) is value for name, value in given.items())
    assert repr(dataset) == "Dataset('mine', queries=2, rows=5, features=2, max_label=2)"


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        (5, "labels[3] is 5 (query 'coffee'), but max_label is 2"),
        (127, "labels[3] is 127 (query 'coffee'), but max_label is 2"),
        (-1, "labels[3] is -1 (query 'coffee')"),
    ],
)
def test_a_label_outside_the_scale_is_named(label: int, problem: str) -> None:
    assert problem in refusal(labels=changed("labels", 3, label)).problem


@pytest.mark.parametrize("wrong", [0, -1, 31, 2.0, 1.5, True, None, "2"])
def test_the_scale_is_a_whole_number(wrong: object) -> None:
    assert f"max_label is {wrong!r}" in refusal(max_label=wrong).problem


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named(value: float) -> None:
    error = refusal(baseline=changed("baseline", 2, value))
    assert f"baseline[2] is {value} (query 'coffee')" in error.problem
    error = refusal(features=changed("features", (1, 0), value))
    assert f"features[1, 0] is {value} (query 'tea')" in error.problem


def test_the_first_value_that_is_not_finite_is_found_in_a_large_table() -> None:
    rows, columns = 90_000, 30  # more than one block
    features = np.zeros((rows, columns), np.float32)
    features[70_001, 29] = features[70_002, 0] = np.nan
    many: dict[str, Any] = {
        "features": features,
        "labels": np.zeros(rows, np.int8),
        "baseline": np.zeros(rows, np.float32),
        "query_pointers": np.array([0, 70_000, rows]),
        "feature_ids": np.arange(1, columns + 1, dtype=np.int32),
    }
    assert "features[70001, 29] is nan (query 'coffee')" in refusal(**many).problem
    assert Dataset(**(arrays() | many), check_values=False).n_rows == rows


@pytest.mark.parametrize(
    ("pointers", "problem"),
    [
        ([0, 2, 4], "query_pointers run from 0 to 4, not from 0 to 5"),
        ([1, 2, 5], "query_pointers run from 1 to 5, not from 0 to 5"),
        ([0, 5, 5], "query_pointers[1] is 5 (query 'coffee'), but the next must exceed it"),
        ([0, 7, 5], "query_pointers[1] is 7 (query 'coffee'), but the next must exceed it"),
        ([0, -1, 5], "query_pointers[0] is 0 (query 'tea'), but the next must exceed it"),
        ([0, 5], "query_pointers has length 2, not 3"),
    ],
)
def test_query_pointers_ascend_over_all_rows(pointers: list[int], problem: str) -> None:
    assert problem in refusal(query_pointers=np.array(pointers)).problem


@pytest.mark.parametrize("name", ["labels", "baseline", "query_splits", "feature_ids"])
def test_arrays_fit_together(name: str) -> None:
    array = arrays()[name]
    error = refusal(**{name: array[:-1]})
    assert f"{name} has length {len(array) - 1}, not {len(array)}" in error.problem
    assert "one for each" in error.remedy


def test_feature_names_are_all_there_or_none() -> None:
    assert "feature_names has length 1, not 2" in refusal(feature_names=("a",)).problem
    assert Dataset(**arrays(), feature_names=("a", "b")).feature_names == ("a", "b")


@pytest.mark.parametrize(
    ("name", "dtype", "problem"),
    [
        ("features", np.float64, "features must be float32, not float64"),
        ("features", np.float16, "features must be float32, not float16"),
        ("labels", np.int64, "labels must be int8, not int64"),
        ("labels", np.float32, "labels must be int8, not float32"),
        ("query_pointers", np.int32, "query_pointers must be int64, not int32"),
        ("query_ids", object, "query_ids must be str, not object"),
        ("query_ids", np.bytes_, "query_ids must be str, not |S6"),
        ("query_splits", np.int64, "query_splits must be int8, not int64"),
        ("baseline", np.float64, "baseline must be float32, not float64"),
        ("baseline", ">f4", "baseline must be float32, not >f4"),
        ("feature_ids", np.int64, "feature_ids must be int32, not int64"),
    ],
)
def test_a_wrong_type_is_named_with_the_right_one(name: str, dtype: Any, problem: str) -> None:  # noqa: ANN401
    error = refusal(**{name: arrays()[name].astype(dtype)})
    assert problem in error.problem
    assert f"{name}.astype(np." in error.remedy


def test_a_list_is_not_an_array() -> None:
    assert "labels must be an array of int8, not list" in refusal(labels=[0, 1, 2, 0, 1]).problem
    assert "baseline must be an array of float32, not NoneType" in refusal(baseline=None).problem


def test_dimensions_are_named() -> None:
    flat = np.zeros(5, np.float32)
    assert "features must have 2 dimensions, not 1" in refusal(features=flat).problem
    assert "baseline must have 1 dimension, not 2" in refusal(baseline=flat[:, None]).problem


@pytest.mark.parametrize("split", [-1, 3])
def test_splits_are_known(split: int) -> None:
    error = refusal(query_splits=changed("query_splits", 1, split))
    assert f"query_splits[1] is {split} (query 'coffee')" in error.problem
    assert error.remedy == "Use 0 for train, 1 for vali, 2 for test."


def test_ids_occur_once() -> None:
    twice = refusal(query_ids=np.array(["tea", "tea"]))
    assert "query_ids[1] is 'tea', which is also the id of an earlier query" in twice.problem
    assert "feature_ids[1] is 3" in refusal(feature_ids=np.array([3, 3], np.int32)).problem
    assert "feature_ids[0] is 0" in refusal(feature_ids=np.array([0, 1], np.int32)).problem


def test_behavior_features_are_features() -> None:
    error = refusal(behavior_features=(4, 7))
    assert "there is no feature 7 to drop" in error.problem
    assert error.remedy == "Its features are numbered 1 to 4."
    assert Dataset(**arrays(), behavior_features=(4,)).behavior_features == (4,)


def test_there_are_queries() -> None:
    nothing = {name: value[:0] for name, value in arrays().items() if hasattr(value, "shape")}
    nothing |= {"query_pointers": np.array([0]), "feature_ids": arrays()["feature_ids"]}
    assert "there are no queries" in refusal(**nothing).problem


def test_a_changed_copy_is_checked_again() -> None:
    dataset = Dataset(**arrays())
    assert replace(dataset, name="other").labels is dataset.labels
    with pytest.raises(DataError, match="labels"):
        replace(dataset, max_label=1)
    with pytest.raises(DataError, match="baseline"):
        replace(dataset, baseline=changed("baseline", 0, np.nan))
