"""A learning-to-rank dataset as flat arrays: rows are items, runs of rows are queries.

Query `q` owns the rows `query_pointers[q] : query_pointers[q + 1]`. Nothing is padded, nothing is
an object array, and every array may be memory-mapped: a set larger than memory is used like any
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ebrank.data.origin import Origin
from ebrank.errors import DataError
from ebrank.typing import Features, Ints, SmallInts

Int8Array: TypeAlias = npt.NDArray[np.int8]
StrArray: TypeAlias = npt.NDArray[np.str_]

SPLITS = ("train", "vali", "test")


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Ragged arrays of queries and their candidate items.

    Attributes:
        name: what to call the dataset in tables.
        features: non-behavior features, float32, shape (rows, features), row-major.
        labels: relevance labels, int8, shape (rows,).
        query_pointers: first row of each query and the end, int64, shape (queries + 1,).
        query_ids: the source's query ids, unicode, shape (queries,).
        query_splits: index into `SPLITS` of each query, int8, shape (queries,).
        baseline: score of the production ranker (BM25), float32, shape (rows,).
        feature_ids: the source's feature numbers, int32, shape (features,).
        max_label: the largest label the scale allows (not merely the largest seen).
        feature_names: names of the features, or () where the source has none.
        origin: which known dataset it is; None for any other.
    """

    name: str
    features: Features
    labels: Int8Array
    query_pointers: Ints
    query_ids: StrArray
    query_splits: Int8Array
    baseline: Features
    feature_ids: SmallInts
    max_label: int
    feature_names: tuple[str, ...] = ()
    origin: Origin | None = None

    def __post_init__(self) -> None:
        """Refuse arrays whose shapes contradict each other."""
        rows, features = self.features.shape
        queries = len(self.query_ids)
        consistent = (
            self.labels.shape == (rows,)
            and self.baseline.shape == (rows,)
            and self.query_pointers.shape == (queries + 1,)
            and self.query_splits.shape == (queries,)
            and self.feature_ids.shape == (features,)
            and len(self.feature_names) in (0, features)
            and int(self.query_pointers[0]) == 0
            and int(self.query_pointers[-1]) == rows
            and bool(np.all(np.diff(self.query_pointers) > 0))
        )
        if not consistent:
            raise DataError(f"the arrays of dataset {self.name!r} do not fit together")

    @property
    def n_rows(self) -> int:
        """Number of (query, item) pairs."""
        return len(self.features)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.query_ids)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_ids)

    @property
    def candidates(self) -> Ints:
        """Number of candidate items of each query."""
        return np.diff(self.query_pointers)

    def rows_of(self, query: int) -> slice:
        """Return the rows of the query with this index."""
        return slice(int(self.query_pointers[query]), int(self.query_pointers[query + 1]))

    def queries_in(self, split: str) -> Ints:
        """Return the indices of the queries of one split."""
        return np.flatnonzero(self.query_splits == SPLITS.index(split))

    def rows_in(self, split: str) -> slice | Ints:
        """Return the rows of one split: a slice where they are contiguous, so no copy is needed."""
        queries = self.queries_in(split)
        if len(queries) == 0:
            return slice(0, 0)
        if queries[-1] - queries[0] + 1 == len(queries):
            return slice(
                int(self.query_pointers[queries[0]]), int(self.query_pointers[queries[-1] + 1])
            )
        return np.concatenate(
            [np.arange(self.query_pointers[q], self.query_pointers[q + 1]) for q in queries]
        )

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, queries={self.n_queries}, rows={self.n_rows}, "
            f"features={self.n_features}, max_label={self.max_label})"
        )
