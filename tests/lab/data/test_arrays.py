"""Datasets from arrays in memory, and from columns of tables."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import DataError
from ebrank.lab.data import from_arrays

QUERIES = ["tea", "mug", "tea", "pot", "mug", "tea"]
COLUMNS: dict[str, Any] = {
    "features": [[1.0, 0.1], [2.0, 0.2], [3.0, 0.3], [4.0, 0.4], [5.0, 0.5], [6.0, 0.6]],
    "labels": [2, 0, 1, 0, 3, 0],
    "queries": QUERIES,
    "baseline": [9.0, 8.0, 7.0, 6.0, 5.0, 4.0],
    "splits": ["train", "vali", "train", "test", "vali", "train"],
}


@pytest.mark.parametrize("kind", ["list", "pyarrow.table", "pandas.DataFrame", "polars.DataFrame"])
def test_columns_of_any_kind(kind: str) -> None:
    columns: Any = COLUMNS
    if kind != "list":
        library, name = kind.split(".")
        texts = {name: COLUMNS[name] for name in ("labels", "queries", "baseline", "splits")}
        table = getattr(import_module(library), name)(texts)
        columns = {name: table[name] for name in texts} | {"features": COLUMNS["features"]}
    dataset = from_arrays(**columns, name="shop")
    assert dataset.name == "shop"
    assert dataset.query_ids.tolist() == ["tea", "mug", "pot"]
    assert dataset.query_pointers.tolist() == [0, 3, 5, 6]
    assert dataset.labels.tolist() == [2, 1, 0, 0, 3, 0]
    assert dataset.max_label == 3
    assert dataset.features[:, 0].tolist() == [1, 3, 6, 2, 5, 4]
    assert dataset.baseline.tolist() == [9, 7, 4, 8, 5, 6]
    assert dataset.query_splits.tolist() == [0, 1, 2]


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
        ({"features": [["a"]] * 6}, "not everything in features is a number"),
        ({"features": [1.0] * 6}, "features have the shape (6,)"),
        ({"labels": [0]}, "labels have the shape (1,), not (6,)"),
        ({"splits": QUERIES}, "unknown split 'mug'"),
        ({"splits": list("abcdef")}, "query 'tea' is in two splits"),
        ({"labels": [0.1] * 6}, "the label of row 0 is 0.1"),
        ({"max_label": 2}, "labels[4] is 3 (query 'mug'), but max_label is 2"),
    ],
)
def test_errors_name_what_is_wrong(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError) as caught:
        from_arrays(**COLUMNS | change)
    assert problem in str(caught.value)


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("kind", ["builtins.list", "pandas.Series", "pyarrow.array"])
def test_a_row_without_a_query_is_refused(kind: str, missing: float | None) -> None:
    library, name = kind.split(".")
    texts = ["tea", "nan", "tea", "None", missing, "tea"]  # both are names that a query may have
    numbers = [1.0, 2.0, 1.0, 2.0, missing, 1.0]
    for queries in (texts, numbers) if kind != "pyarrow.array" else ([*texts[:4], None, "tea"],):
        given_queries = getattr(import_module(library), name)(queries)
        with pytest.raises(DataError, match="row 4 has no query"):
            from_arrays(**COLUMNS | {"queries": given_queries, "splits": None})
