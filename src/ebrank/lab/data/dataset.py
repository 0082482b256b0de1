"""A learning-to-rank dataset as flat arrays: rows are items, runs of rows are queries.

Query `q` owns the rows `query_pointers[q] : query_pointers[q + 1]`. Nothing is padded, nothing is
an object array, and every array may be memory-mapped.

A `Dataset` that exists is valid: the constructor checks every array and names what is wrong.

>>> arrays = dict(
...     features=np.array([[0.5, 1.0], [0.1, 0.0]], np.float32),
...     query_pointers=np.array([0, 2]),
...     query_ids=np.array(["tea"]),
...     query_splits=np.array([0], np.int8),
...     baseline=np.array([0.5, 0.1], np.float32),
...     feature_ids=np.array([1, 2], np.int32),
... )
>>> Dataset(name="mine", labels=np.array([2, 0], np.int8), max_label=2, **arrays)
Dataset('mine', queries=1, rows=2, features=2, max_label=2)
>>> try:
...     Dataset(name="mine", labels=np.array([2, 5], np.int8), max_label=2, **arrays)
... except DataError as error:
...     print(error.problem)
dataset 'mine': labels[1] is 5 (query 'tea'), but max_label is 2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import InitVar, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ebrank.errors import DataError
from ebrank.lab.data.interpretation import MAX_LABEL
from ebrank.lab.data.published import fold_of
from ebrank.typing import Bools, Features, Floats, Ints, Labels, SmallInts, Texts

SPLITS = ("train", "vali", "test")

ARRAYS: dict[str, tuple[np.dtype[Any], int]] = {
    "features": (np.dtype(np.float32), 2),
    "labels": (np.dtype(np.int8), 1),
    "query_pointers": (np.dtype(np.int64), 1),
    "query_ids": (np.dtype(np.str_), 1),
    "query_splits": (np.dtype(np.int8), 1),
    "baseline": (np.dtype(np.float32), 1),
    "feature_ids": (np.dtype(np.int32), 1),
    "items": (np.dtype(np.int64), 1),
    "relevance": (np.dtype(np.float64), 1),
}
"""Type and dimensions of each array of a `Dataset`."""
OPTIONAL_ARRAYS = ("items", "relevance")
"""Those that most datasets do not have: None then."""
MAX_LEVEL = 127
"""The largest label where a dataset has its own `relevance`: labels then number its values."""

_BLOCK = 1 << 20  # values tested together, so that they stay in the processor's cache


@dataclass(frozen=True)
class Origin:
    """Which known dataset this is: a preset, or files in the place of a published one.

    A name proves nothing, since any folder may be called MQ2007. So the origin also records how
    the files differ from the published ones.

    >>> Origin("MQ2007", fold=1).published, Origin("mq2007-like", preset=True).published
    (True, False)
    >>> Origin("MQ2007", differences=("MQ2007 (train): 3 queries, expected 1,017",)).published
    False

    Attributes:
        name: the preset's, or the catalog's.
        preset: whether it is synthetic.
        scale: share of the preset's queries.
        fold: which fold of a published dataset; None if unknown.
        differences: how the files differ from the catalog, a sentence each.
    """

    name: str
    preset: bool = False
    scale: float = 1.0
    fold: int | None = None
    differences: tuple[str, ...] = ()

    @property
    def published(self) -> bool:
        """Whether the content is identical to the published dataset."""
        return not self.preset and not self.differences


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Ragged arrays of queries and their candidate items.

    Attributes:
        name: what to call the dataset in tables.
        features: finite numbers, float32, shape (rows, features), row-major.
        labels: relevance labels from 0 to `max_label`, int8, shape (rows,).
        query_pointers: first row of each query and the end, int64, shape (queries + 1,).
        query_ids: the source's query ids, each once, unicode, shape (queries,).
        query_splits: index into `SPLITS` of each query, int8, shape (queries,).
        baseline: score of the production ranker (BM25), finite, float32, shape (rows,). If all
            scores are equal, because there is no such ranker, each trial of a simulation draws a
            random order.
        feature_ids: the source's feature numbers, each once, from 1, int32, shape (features,).
        max_label: the largest label the scale allows (not merely the largest seen).
        items: number of the catalog item behind each row, from 0, at most once per query, int64,
            shape (rows,); None if every document belongs to one query.
        relevance: R of each label, from 0 to 1 and never falling, float64, shape (max_label + 1,),
            for a dataset that knows it; None if users and their config decide.
        behavior_features: numbers of the features derived from clicks, which `prepare` removes.
        origin: which known dataset it is; None for any other.
        check_values: an argument only. False skips the test that features and baseline are
            finite, if the caller has made sure of it.

    Raises:
        DataError: if an array has the wrong type, does not fit the others, or holds a value that
            it must not; names the dataset, the array and the place.
    """

    name: str
    features: Features
    labels: Labels
    query_pointers: Ints
    query_ids: Texts
    query_splits: Labels
    baseline: Features
    feature_ids: SmallInts
    max_label: int
    items: Ints | None = None
    relevance: Floats | None = None
    behavior_features: tuple[int, ...] = ()
    origin: Origin | None = None
    check_values: InitVar[bool] = True

    def __post_init__(self, check_values: bool) -> None:
        self._check_types()
        self._check_scale()
        self._check_lengths()
        for name, wrong, remedy, why in self._wrong_values():
            self._refuse_first(name, wrong, remedy, why)
        self.check_feature_numbers(self.behavior_features)
        if check_values:
            self._check_finite("baseline")
            self._check_finite("features")

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
    def fold(self) -> int | None:
        """Which fold it is, by its origin or its folder's name; None where that is unknown."""
        return fold_of(Path(self.name)) if self.origin is None else self.origin.fold

    @property
    def candidates(self) -> Ints:
        """Number of candidate items of each query."""
        return np.diff(self.query_pointers)

    @property
    def query_of_rows(self) -> Ints:
        """Index of each row's query."""
        return np.repeat(np.arange(self.n_queries), self.candidates)

    def rows_of(self, query: int) -> slice:
        """Return the rows of the query with this index."""
        return slice(int(self.query_pointers[query]), int(self.query_pointers[query + 1]))

    def queries_in(self, split: str) -> Ints:
        """Return the indices of the queries of one split."""
        return np.flatnonzero(self.query_splits == SPLITS.index(split))

    def rows_in(self, split: str) -> slice | Ints:
        """Return the rows of one split: a slice if they are contiguous, to avoid a copy."""
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

    def with_columns(self, columns: Features) -> Dataset:
        """Return it with further features, shape (rows, columns)."""
        features = np.hstack([self.features, columns])
        numbers = np.arange(1, features.shape[1] + 1, dtype=np.int32)
        return replace(self, features=features, feature_ids=numbers)

    def only(self, queries: Ints, **changes: Any) -> Dataset:  # noqa: ANN401 (fields)
        """Return the queries with these indices, in ascending order, with other fields changed."""
        kept = np.zeros(self.n_queries, np.bool_)
        kept[queries] = True
        rows = np.repeat(kept, self.candidates)
        for name in ("features", "labels", "baseline", "items"):
            if name not in changes and getattr(self, name) is not None:
                changes[name] = getattr(self, name)[rows]
        return replace(
            self,
            query_pointers=np.concatenate(([0], np.cumsum(self.candidates[kept]))),
            query_ids=self.query_ids[kept],
            query_splits=self.query_splits[kept],
            **changes,
        )

    def check_feature_numbers(self, numbers: Iterable[int]) -> None:
        """Raise unless all of these are features of the dataset."""
        absent = sorted(set(numbers) - set(self.feature_ids.tolist()))
        if absent:
            self._refuse(
                f"there is no feature {', '.join(map(str, absent))} to drop",
                f"Its features are numbered {self.feature_ids.min()} to {self.feature_ids.max()}.",
            )

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, queries={self.n_queries}, rows={self.n_rows}, "
            f"features={self.n_features}, max_label={self.max_label})"
        )

    def _refuse(self, problem: str, remedy: str) -> NoReturn:
        raise DataError(f"dataset {self.name!r}: {problem}", remedy=remedy)

    def _refuse_first(self, name: str, wrong: Bools, remedy: str, why: str) -> None:
        """Raise for the first wrong element of an array, if any; name its query if there is one."""
        if wrong.any():
            index, query = int(wrong.argmax()), ""
            if name in ("labels", "items"):
                query = f" (query {self._query_of(index)!r})"
            elif name in ("query_pointers", "query_splits"):
                query = f" (query {str(self.query_ids[index])!r})"
            value = getattr(self, name)[index].item()
            self._refuse(f"{name}[{index}] is {value!r}{query}{why}", remedy)

    def _check_types(self) -> None:
        for name, (dtype, dimensions) in ARRAYS.items():
            array, given = getattr(self, name), type(getattr(self, name)).__name__
            if array is None and name in OPTIONAL_ARRAYS:
                continue
            if isinstance(array, np.ndarray):
                right = array.dtype == dtype or array.dtype.kind == dtype.kind == "U"
                if right and array.ndim == dimensions:
                    continue
                given = f"{array.dtype} with {array.ndim}"
            self._refuse(
                f"{name} must be {dtype.name} with {dimensions} dimension(s), not {given}",
                "Give features a row per item and a column per feature. If the values fit, convert "
                f"them: np.asarray({name}, np.{dtype.type.__name__}).",
            )

    def _check_lengths(self) -> None:
        rows, columns = self.features.shape
        queries = len(self.query_ids)
        if queries == 0:
            self._refuse("there are no queries", "Give at least one.")
        for name, length, reason in (
            ("labels", rows, "one for each row of features"),
            ("items", rows, "one for each row of features, or None"),
            ("baseline", rows, "one for each row of features"),
            ("query_splits", queries, "one for each of query_ids"),
            ("query_pointers", queries + 1, "one for each of query_ids, and the end"),
            ("feature_ids", columns, "one for each column of features"),
            ("relevance", self.max_label + 1, "one for each label from 0 to max_label"),
        ):
            value = getattr(self, name)
            actual = length if value is None else len(value)
            if actual != length:
                self._refuse(f"{name} has length {actual}, not {length}", f"Give {reason}.")

    def _check_scale(self) -> None:
        largest = MAX_LABEL if self.relevance is None else MAX_LEVEL
        whole = isinstance(self.max_label, Integral) and not isinstance(self.max_label, bool)
        if not whole or not 1 <= self.max_label <= largest:
            self._refuse(
                f"max_label is {self.max_label!r}",
                f"Give the largest label of the scale, a whole number from 1 to {largest}.",
            )

    def _wrong_values(self) -> Iterator[tuple[str, Bools, str, str]]:
        """Yield arrays with which of their values are wrong, what to do, and why they are."""
        remedy = "Give the first row of each query in order, then the number of rows."
        pointers = self.query_pointers
        if pointers[0] != 0 or pointers[-1] != self.n_rows:
            ends = f"{pointers[0]} to {pointers[-1]}"
            self._refuse(f"query_pointers run from {ends}, not from 0 to {self.n_rows}", remedy)
        empty = pointers[1:] <= pointers[:-1]
        yield "query_pointers", empty, remedy, ", but the next must exceed it"
        remedy = f"Use {', '.join(f'{i} for {split}' for i, split in enumerate(SPLITS))}."
        splits = self.query_splits
        yield "query_splits", (splits < 0) | (splits >= len(SPLITS)), remedy, ""
        remedy = "Keep the rows of a query together, and give each query its own id."
        why = ", which is also the id of an earlier query"
        yield "query_ids", _repeated(self.query_ids), remedy, why
        remedy, numbers = "Number the features from 1, each once.", self.feature_ids
        yield "feature_ids", numbers < 1, remedy, ""
        yield "feature_ids", _repeated(numbers), remedy, ", the same as an earlier one"
        remedy = (
            "Labels are whole numbers from 0, which means not relevant, to max_label, the largest "
            "of the scale."
        )
        wrong = (self.labels < 0) | (self.labels > self.max_label)
        yield "labels", wrong, remedy, f", but max_label is {self.max_label}"
        if self.relevance is not None:
            remedy = "Give R of each label from 0 to max_label: from 0 to 1, and never falling."
            yield "relevance", ~((self.relevance >= 0) & (self.relevance <= 1)), remedy, ""
            falls = np.diff(self.relevance, prepend=0.0) < 0
            yield "relevance", falls, remedy, ", less than that of the label before"
        if self.items is not None:
            remedy = "Number the items of the catalog from 0, and list each once per query."
            yield "items", self.items < 0, remedy, ""
            pairs = self.query_of_rows * (self.items.max(initial=0) + 1) + self.items
            yield "items", _repeated(pairs), remedy, ", the same as an earlier one of its query"

    def _check_finite(self, name: str) -> None:
        array: npt.NDArray[Any] = getattr(self, name)
        rows = max(1, _BLOCK // max(1, array[:1].size))
        for start in range(0, len(array), rows):
            finite = np.isfinite(array[start : start + rows])
            if not finite.all():
                row, *column = np.argwhere(~finite)[0].tolist()
                place = ", ".join(map(str, (start + row, *column)))
                value = array[start + row, *column]
                self._refuse(
                    f"{name}[{place}] is {value} (query {self._query_of(start + row)!r})",
                    "Replace it with a finite number, such as 0.",
                )

    def _query_of(self, row: int) -> str:
        """Return the id of the query that owns a row."""
        query = int(np.searchsorted(self.query_pointers, row, side="right")) - 1
        return str(self.query_ids[query])


def _repeated(values: npt.NDArray[Any]) -> Bools:
    """Return which values repeat an earlier one."""
    repeated = np.zeros(len(values), np.bool_)
    ordered = np.sort(values)
    if (ordered[1:] == ordered[:-1]).any():
        repeated[:] = True
        repeated[np.unique(values, return_index=True)[1]] = False
    return repeated
