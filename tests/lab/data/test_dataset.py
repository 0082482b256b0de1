"""A `Dataset` that exists is valid: what the constructor refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ebrank.errors import DataError
from ebrank.lab.data.dataset import Dataset

ARRAYS: dict[str, Any] = {
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
"""Two queries of two and three items, two features."""


def refusal(**changes: object) -> DataError:
    """Return the error for the same dataset with other arrays."""
    with pytest.raises(DataError) as error:
        Dataset(**(ARRAYS | changes))
    assert error.value.problem.startswith("dataset 'mine': ")
    assert error.value.remedy.endswith(".")
    return error.value


def changed(name: str, index: int | tuple[int, ...], value: object) -> Any:  # noqa: ANN401
    array = ARRAYS[name].copy()
    array[index] = value
    return array


CATALOG: dict[str, Any] = {
    "items": np.array([7, 0, 2, 7, 0]),
    "relevance": np.array([0.1, 0.4, 0.4]),
}
BEHAVIOR: dict[str, Any] = {"behavior_features": (4,)}


@pytest.mark.parametrize("more", [{}, CATALOG, BEHAVIOR], ids=["", "catalog", "behavior"])
def test_valid_arrays_are_taken_as_they_are(more: dict[str, Any]) -> None:
    arrays = ARRAYS | more
    dataset = Dataset(**arrays)
    assert all(getattr(dataset, name) is value for name, value in arrays.items())
    assert repr(dataset) == "Dataset('mine', queries=2, rows=5, features=2, max_label=2)"


@pytest.mark.parametrize(
    ("name", "index", "value", "problem"),
    [
        ("labels", 3, 5, "labels[3] is 5 (query 'coffee'), but max_label is 2"),
        ("labels", 3, 127, "labels[3] is 127 (query 'coffee'), but max_label is 2"),
        ("labels", 3, -1, "labels[3] is -1 (query 'coffee')"),
        *(("query_splits", 1, i, f"query_splits[1] is {i} (query 'coffee')") for i in (-1, 3)),
        ("query_ids", 1, "tea", "query_ids[1] is 'tea', which is also the id of an earlier query"),
        ("feature_ids", 1, 1, "feature_ids[1] is 1"),
        ("feature_ids", 0, 0, "feature_ids[0] is 0"),
        ("query_pointers", 2, 4, "query_pointers run from 0 to 4, not from 0 to 5"),
        ("query_pointers", 0, 1, "query_pointers run from 1 to 5, not from 0 to 5"),
        ("query_pointers", 1, 5, "query_pointers[1] is 5 (query 'coffee'), but the next must"),
        ("query_pointers", 1, 7, "query_pointers[1] is 7 (query 'coffee'), but the next must"),
        ("query_pointers", 1, -1, "query_pointers[0] is 0 (query 'tea'), but the next must"),
        ("baseline", 2, np.nan, "baseline[2] is nan (query 'coffee')"),
        ("features", (1, 0), np.inf, "features[1, 0] is inf (query 'tea')"),
        ("features", (1, 0), -np.inf, "features[1, 0] is -inf (query 'tea')"),
    ],
)
def test_a_wrong_value_is_named(
    name: str, index: int | tuple[int, int], value: object, problem: str
) -> None:
    assert problem in refusal(**{name: changed(name, index, value)}).problem


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
    assert Dataset(**(ARRAYS | many), check_values=False).n_rows == rows


TYPES = (
    *(("features", np.float64), ("labels", np.int64), ("labels", np.float32)),
    *(("query_ids", object), ("query_ids", np.bytes_), ("baseline", np.float64)),
    *(("baseline", ">f4"), ("query_pointers", np.int32), ("query_splits", np.int64)),
    ("feature_ids", np.int64),
)
SHORT = ("labels", "baseline", "query_splits", "query_pointers", "feature_ids")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        *(
            ({name: ARRAYS[name][:-1]}, f"{name} has length {len(ARRAYS[name]) - 1},")
            for name in SHORT
        ),
        *(
            ({name: ARRAYS[name].astype(dtype)}, f"{name} must be {ARRAYS[name].dtype.name[:3]}")
            for name, dtype in TYPES
        ),
        *(({"max_label": wrong}, f"max_label is {wrong!r}") for wrong in (0, 31, 2.0, True, None)),
        ({"labels": [0, 1, 2, 0, 1]}, "labels must be int8 with 1 dimension(s), not list"),
        ({"baseline": None}, "not NoneType"),
        ({"features": np.zeros(5, np.float32)}, "with 2 dimension(s), not float32 with 1"),
        ({"baseline": np.zeros((5, 1), np.float32)}, "with 1 dimension(s), not float32 with 2"),
        ({"behavior_features": (4, 7)}, "there is no feature 7 to drop"),
        ({"items": np.array([7, 0, 2, 7, 2])}, "items[4] is 2 (query 'coffee'), the same as"),
        ({"items": np.array([7, -1, 2, 7, 0])}, "items[1] is -1 (query 'tea')"),
        ({"items": np.array([7, 0])}, "items has length 2, not 5"),
        ({"items": np.array([7, 0, 2, 7, 0], np.int32)}, "items must be int64"),
        ({"relevance": np.array([0.1, 0.4])}, "relevance has length 2, not 3"),
        ({"relevance": np.array([0.1, 1.4, 2.0])}, "relevance[1] is 1.4"),
        ({"relevance": np.array([np.nan, 0.4, 0.5])}, "relevance[0] is nan"),
        ({"relevance": np.array([0.4, 0.1, 0.5])}, "relevance[1] is 0.1, less than"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], problem: str) -> None:
    assert problem in refusal(**changes).problem


def test_there_are_queries() -> None:
    nothing = {name: value[:0] for name, value in ARRAYS.items() if hasattr(value, "shape")}
    nothing |= {"query_pointers": np.array([0]), "feature_ids": ARRAYS["feature_ids"]}
    assert "there are no queries" in refusal(**nothing).problem


def test_relevance_of_its_own_allows_more_labels() -> None:
    many = {"max_label": 127, "relevance": np.linspace(0, 1, 128)}
    assert Dataset(**(ARRAYS | many)).max_label == 127
    assert "max_label is 127" in refusal(max_label=127).problem
    assert "max_label is 128" in refusal(max_label=128, relevance=np.linspace(0, 1, 129)).problem


def test_further_columns_change_nothing_else() -> None:
    data = Dataset(**ARRAYS)
    wider = data.with_columns(np.full((5, 2), 7.0, np.float32))
    assert np.array_equal(wider.features[:, :2], data.features)
    assert (wider.features[:, 2:] == 7.0).all()
    assert (wider.n_features, data.n_features) == (4, 2)
    assert wider.feature_ids.tolist() == [1, 2, 3, 4]
    assert wider.labels is data.labels
