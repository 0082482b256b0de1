"""Datasets from arrays and tables in memory."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import DataError
from ebrank.lab.data import from_arrays, from_table

QUERIES = ["tea", "mug", "tea", "pot", "mug", "tea"]
TABLE: dict[str, Any] = {
    "query": QUERIES,
    "grade": [2, 0, 1, 0, 3, 0],
    "price": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "age": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
    "bm25": [9.0, 8.0, 7.0, 6.0, 5.0, 4.0],
    "part": ["train", "vali", "train", "test", "vali", "train"],
}
WHERE: dict[str, Any] = {"query": "query", "label": "grade", "baseline": "bm25", "split": "part"}


@pytest.mark.parametrize(
    "kind", ["builtins.dict", "pyarrow.table", "pandas.DataFrame", "polars.DataFrame"]
)
def test_a_table_of_any_kind(kind: str) -> None:
    library, name = kind.split(".")
    table = getattr(import_module(library), name)(TABLE)
    dataset = from_table(table, **WHERE, name="shop")
    assert dataset.name == "shop"
    assert dataset.query_ids.tolist() == ["tea", "mug", "pot"]
    assert dataset.query_pointers.tolist() == [0, 3, 5, 6]
    assert dataset.labels.tolist() == [2, 1, 0, 0, 3, 0]
    assert dataset.max_label == 3
    assert dataset.feature_names == ("price", "age", "bm25"), "as in files, a feature too"
    assert dataset.features[:, 0].tolist() == [1, 3, 6, 2, 5, 4]
    assert dataset.baseline.tolist() == [9, 7, 4, 8, 5, 6]
    assert dataset.query_splits.tolist() == [0, 1, 2]


def test_features_may_be_chosen() -> None:
    dataset = from_table(TABLE, **WHERE, features=["age"])
    assert dataset.feature_names == ("age",)
    assert dataset.features.shape == (6, 1)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60))
def test_rows_stay_in_their_order_within_a_query(queries: list[int]) -> None:
    rows = np.arange(len(queries), dtype=np.float32)
    dataset = from_arrays(rows[:, None], np.zeros(len(queries)), queries)
    listed = {
        str(name): dataset.features[dataset.rows_of(q), 0].tolist()
        for q, name in enumerate(dataset.query_ids)
    }
    assert listed == {
        str(name): [row for row, own in enumerate(queries) if own == name] for name in set(queries)
    }
    assert dataset.query_ids.tolist() == [str(name) for name in dict.fromkeys(queries)]


def test_a_name_decides_on_the_split_of_a_query_whatever_the_others_are() -> None:
    names = [f"q{i}" for i in range(2000)]

    def split_of(chosen: list[str]) -> dict[str, int]:
        dataset = from_arrays(np.ones((len(chosen), 1)), np.zeros(len(chosen)), chosen)
        return dict(zip(chosen, dataset.query_splits.tolist(), strict=True))

    all_of_them = split_of(names)
    assert split_of(names[::3]).items() <= all_of_them.items()
    shares = np.bincount(list(all_of_them.values())) / len(names)
    np.testing.assert_allclose(shares, [0.6, 0.2, 0.2], atol=0.03)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"query": "qid"}, "no column 'qid'. Its columns: query, grade, price"),
        ({"features": ["query"]}, "not everything in column 'query' is a number"),
        ({"features": []}, "the table has no features"),
        ({"split": "query", "features": ["age"]}, "unknown split 'mug'"),
        ({"split": "price", "features": ["age"]}, "query 'tea' is in two splits"),
        ({"label": "age"}, "the label of row 0 is 0.1"),
        ({"max_label": 2}, "labels[4] is 3 (query 'mug'), but max_label is 2"),
    ],
)
def test_errors_name_what_is_wrong(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError) as caught:
        from_table(TABLE, **WHERE | change)
    assert problem in str(caught.value)


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("kind", ["builtins.dict", "pyarrow.table", "pandas.DataFrame"])
def test_a_row_without_a_query_is_refused(kind: str, missing: float | None) -> None:
    library, name = kind.split(".")
    texts = ["tea", "nan", "tea", "None", missing, "tea"]  # both are names that a query may have
    numbers = [1.0, 2.0, 1.0, 2.0, missing, 1.0]
    for queries in (texts, numbers) if kind != "pyarrow.table" else ([*texts[:4], None, "tea"],):
        table = getattr(import_module(library), name)(TABLE | {"query": queries})
        with pytest.raises(DataError, match="row 4 has no query"):
            from_table(table, **WHERE)


def test_columns_may_have_numbers_for_names() -> None:
    table = pd.DataFrame([[7, 1, 0.5], [7, 0, 0.1]])
    dataset = from_table(table, query="0", label="1")
    assert (dataset.query_ids.tolist(), dataset.feature_names) == (["7"], ("2",))


@pytest.mark.parametrize(
    ("features", "labels", "problem"),
    [
        ([["high"], ["low"]], [0, 1], "not everything in features is a number"),
        ([[1.0], [2.0]], ["bad", "good"], "not everything in labels is a number"),
        ([1.0, 2.0], [0, 1], "features have the shape"),
        ([[1.0], [2.0]], [0, 1, 2], r"labels have the shape \(3,\), not \(2,\)"),
    ],
)
def test_arrays_are_numbers_and_fit(features: Any, labels: Any, problem: str) -> None:  # noqa: ANN401
    with pytest.raises(DataError, match=problem):
        from_arrays(features, labels, ["a", "a"])


def test_a_table_has_columns() -> None:
    with pytest.raises(DataError, match="list has no named columns"):
        from_table([1], query="q", label="y")
