"""Datasets from memory: arrays, or columns of a pandas, Polars or Arrow table.

Rows of a query need not be together:

>>> dataset = from_arrays([[0.5], [0.2], [0.1]], [2, 1, 0], ["tea", "mug", "tea"], name="shop")
>>> dataset
Dataset('shop', queries=2, rows=3, features=1, max_label=2)
>>> dataset.query_ids.tolist(), dataset.features.ravel().tolist()
(['tea', 'mug'], [0.5, 0.10000000149011612, 0.20000000298023224])

`ebrank.lab.data.prepare` makes it ready for experiments, as `ebrank.load` does for files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from ebrank.errors import DataError
from ebrank.lab.data.dataset import SPLITS, Dataset
from ebrank.typing import Ints, Labels

NOTHING = {"None", "nan", "NaT", "<NA>"}
"""How values that are missing look as text."""
SHARES = 0.6, 0.8
"""Where the shares of training and validation queries end; the rest is for testing."""


def from_arrays(
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    queries: npt.ArrayLike,
    *,
    baseline: npt.ArrayLike | None = None,
    splits: npt.ArrayLike | None = None,
    items: npt.ArrayLike | None = None,
    name: str = "arrays",
    max_label: int | None = None,
) -> Dataset:
    """Return the dataset in arrays, or anything that NumPy makes arrays of.

    Args:
        features: a row per query and item, a column per feature.
        labels: relevance, whole numbers from 0; like all that follows, one per row.
        queries: the query of each row.
        baseline: the production ranker's score, which ranks the initial log; by default its order
            is random.
        splits: `train`, `vali` or `test`, the same for all rows of a query; by default a hash of
            the query's name decides, 60 : 20 : 20.
        items: names the catalog item of each row, if queries share items.
        name: what to call the dataset.
        max_label: the largest label of the scale; by default the largest there is.
    """
    matrix = np.ascontiguousarray(_numbers(features, "features", np.float32))
    if matrix.ndim != 2 or len(matrix) == 0:
        raise DataError(
            f"features have the shape {matrix.shape}",
            remedy="Give a row per item and a column per feature.",
        )
    columns = {
        **{"labels": labels, "queries": queries, "baseline": baseline},
        **{"splits": splits, "items": items},
    }
    for what, values in columns.items():
        if values is not None and np.shape(values) != (len(matrix),):
            raise DataError(
                f"{what} have the shape {np.shape(values)}, not ({len(matrix)},)",
                remedy="Give one for each row of features.",
            )
    ids, order, pointers = _grouped(_given_queries(queries))
    grades = _numbers(labels, "labels")
    wrong = np.flatnonzero(~((grades >= 0) & (grades <= 127) & (grades == np.floor(grades))))
    if len(wrong):
        raise DataError(
            f"the label of row {wrong[0]} is {grades[wrong[0]]:g}",
            remedy="Labels are whole numbers from 0, which means not relevant.",
        )
    whole = grades[order].astype(np.int8)
    scores = np.zeros(len(matrix)) if baseline is None else _numbers(baseline, "baseline")
    return Dataset(
        name=name,
        features=matrix[order],
        labels=whole,
        query_pointers=pointers,
        query_ids=ids,
        query_splits=_by_hash(ids) if splits is None else _given(splits, order, pointers, ids),
        baseline=scores[order].astype(np.float32),
        feature_ids=np.arange(1, matrix.shape[1] + 1, dtype=np.int32),
        max_label=max(int(whole.max()), 1) if max_label is None else max_label,
        items=None if items is None else _numbered(items)[order],
    )


def _numbers(
    values: npt.ArrayLike, what: str, dtype: npt.DTypeLike = np.float64
) -> npt.NDArray[Any]:
    try:
        return np.asarray(values, dtype)
    except (TypeError, ValueError):
        raise DataError(
            f"not everything in {what} is a number",
            remedy="Convert it to numbers, or leave it out.",
        ) from None


def _given_queries(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the query of each row; raise if one has none, be it None, NaN or a library's own."""
    queries = np.asarray(values, object if isinstance(values, list | tuple) else None)
    if queries.dtype.kind in "fcmMO":  # others cannot be missing
        for row, query in enumerate(queries.tolist()):
            if not isinstance(query, str) and str(query) in NOTHING:
                raise DataError(f"row {row} has no query", remedy="Give it one, or leave it out.")
    return queries


def _grouped(queries: npt.NDArray[Any]) -> tuple[npt.NDArray[np.str_], Ints, Ints]:
    """Return the queries in the order they first occur, the order of rows, and where each begins.

    >>> _grouped(np.array(["b", "a", "b"]))
    (array(['b', 'a'], dtype='<U1'), array([0, 2, 1]), array([0, 2, 3]))
    """
    texts = queries.astype(np.str_)
    places: dict[str, int] = {}
    place = np.array([places.setdefault(text, len(places)) for text in texts.tolist()], np.int64)
    pointers = np.concatenate([[0], np.cumsum(np.bincount(place))])
    return np.array(list(places), texts.dtype), np.argsort(place, kind="stable"), pointers


def _numbered(items: npt.ArrayLike) -> Ints:
    """Return the number of each row's item, in the order of their names."""
    _, numbers = np.unique(np.asarray(items).astype(np.str_), return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)


def _by_hash(ids: npt.NDArray[np.str_]) -> Labels:
    """Return the split of each query by its name alone: more queries do not move the others."""
    places = [xxhash.xxh3_64_intdigest(str(name).encode()) / 2**64 for name in ids]
    return np.searchsorted(SHARES, places, side="right").astype(np.int8)


def _given(splits: npt.ArrayLike, order: Ints, pointers: Ints, ids: npt.NDArray[np.str_]) -> Labels:
    texts = np.asarray(splits).astype(np.str_)[order]
    firsts = texts[pointers[:-1]]
    mixed = np.flatnonzero(texts != np.repeat(firsts, np.diff(pointers)))
    if len(mixed):
        owner = ids[np.searchsorted(pointers, mixed[0], side="right") - 1]
        raise DataError(
            f"query {str(owner)!r} is in two splits",
            remedy="Put all rows of a query into the same split.",
        )
    unknown = sorted(set(firsts.tolist()) - set(SPLITS))
    if unknown:
        raise DataError(f"unknown split {unknown[0]!r}", remedy=f"Use {', '.join(SPLITS)}.")
    return np.array([SPLITS.index(text) for text in firsts.tolist()], np.int8)
