"""Evidence in memory: rows of items with what users did, and their features.

>>> import tempfile
>>> from pathlib import Path
>>> from ebrank import EBRanker
>>> from ebrank.addons.logs import aggregate, read_evidence
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "log.csv").write_text('''ranking,query,item,type,rank
... r1,tea,sencha,impression,1
... r1,tea,sencha,click,
... r1,tea,assam,impression,2
... ''')
>>> _ = (folder / "items.csv").write_text('''item,price,rating
... sencha,0.4,4.6
... assam,0.2,4.1
... ''')
>>> report = aggregate([folder / "log.csv"], folder / "evidence.parquet")
>>> evidence = read_evidence(folder / "evidence.parquet", features=folder / "items.csv")
>>> ranker = EBRanker().fit(evidence.scaled(), evidence.stats)
"""

from __future__ import annotations

import math
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ebrank.addons.logs.evidence_file import EvidenceMetadata, read_table
from ebrank.addons.tables import as_name, as_number, rows, wrong_value
from ebrank.environment.paths import expanded
from ebrank.errors import DataError
from ebrank.evidence import Behaviors, BehaviorStats
from ebrank.evidence.slots import SLOTS
from ebrank.evidence.stats import COUNT, TOO_MANY
from ebrank.model.policy.scaling import Scaling
from ebrank.typing import Features, Floats, Ints, SmallInts

NAMES = ("query", "item")
LARGEST = float(np.finfo(np.float32).max)
MOST = np.iinfo(COUNT).max


@dataclass(frozen=True, eq=False)
class Evidence:
    """Items of all queries in sequence, in the order of their names.

    Attributes:
        queries: their names.
        pointers: first row of each query and the end, shape (queries + 1,).
        items: the item of each row.
        stats: what users did with each; `stats.behaviors` says what was counted.
        first_shown: when each was first shown, in seconds since 1970; NaN if that is unknown.
        last_time: the latest time of the log; None if it had no times.
        features: float32, NaN where missing, shape (rows, features); None if none were given.
        feature_names: their names.
        dropped: how many rows were left out because they have no features.
        unseen: the features of items of the table that are in no row, if it names no queries.
        shared: whether the features are those of items, whatever the query.
    """

    queries: list[str]
    pointers: Ints
    items: list[str]
    stats: BehaviorStats
    first_shown: Floats
    last_time: float | None = None
    features: Features | None = None
    feature_names: tuple[str, ...] = ()
    dropped: int = 0
    unseen: Mapping[str, Features] = field(default_factory=dict)
    shared: bool = False

    def __len__(self) -> int:
        return len(self.items)

    def scaled(self, kind: Literal["query", "global", "none"] = "query") -> Features:
        """Return the features for `EBRanker.fit`; `query` scales within each query."""
        features = self.given_features()
        return Scaling.learn(kind, features)(features, self.pointers)

    def given_features(self) -> Features:
        """Return the features; raise if there are none."""
        if self.features is None:
            raise DataError("no features were given", remedy="Read them with features=FILE.")
        return self.features

    def pairs(self) -> list[tuple[str, str]]:
        """Return the query and the item of each row."""
        return [(query, item) for query, rows in self.rows() for item in self.items[rows]]

    def renamed(self, name: Callable[[str], str]) -> Evidence:
        """Return it with other names of queries; queries with the same name are added up."""
        names = {query: name(query) for query in self.queries}
        if all(old == new for old, new in names.items()):
            return self
        keys = [(names[query], item) for query, item in self.pairs()]
        return _laid_out(self, keys, keys)

    def rows(self) -> Iterator[tuple[str, slice]]:
        """Yield each query with its rows."""
        for at, query in enumerate(self.queries):
            yield query, slice(int(self.pointers[at]), int(self.pointers[at + 1]))


def read_evidence(
    path: str | os.PathLike[str],
    *,
    features: str | os.PathLike[str] | None = None,
    missing: Literal["refuse", "drop"] = "refuse",
) -> Evidence:
    """Return what `aggregate` wrote, with features from a table.

    Args:
        path: a file of evidence.
        features: a Parquet, CSV or NDJSON file with a row for each item, or each query and item:
            columns `item` and optionally `query`, all others numbers. It can also name items that
            nobody has seen: with `query`, or if the log has only one, they are candidates of it;
            otherwise they are `unseen`.
        missing: what to do with items that the table lacks.

    Raises:
        DataError: naming the file and the item, column or row.
    """
    file = expanded(path)
    about, table = read_table(file)
    evidence = _arrays(file, about, table)
    if features is None:
        return evidence
    return _with_features(evidence, file, expanded(features), missing)


def _arrays(path: Path, about: EvidenceMetadata, table: Any) -> Evidence:  # noqa: ANN401 (an Arrow table)
    behaviors = Behaviors.of(about.behaviors, about.negative)
    outcome, slot, count = (table[name].to_numpy() for name in ("outcome", "slot", "count"))
    wrong = (outcome < 0) | (outcome >= behaviors.outcomes) | (slot < 0) | (slot >= SLOTS)
    wrong |= count < 1
    if wrong.any():
        raise DataError(
            f"row {int(np.flatnonzero(wrong)[0]) + 1} counts something unknown",
            path=path,
            remedy="Make it again with `ebrank aggregate`.",
        )
    queries, query_of = _coded(table["query"])
    items, item_of = _coded(table["item"])
    pairs, rows = np.unique(query_of * len(items) + item_of, return_inverse=True)
    owners = pairs // max(len(items), 1)
    asked, pointers = np.unique(owners, return_index=True)  # where each query begins
    counts = np.zeros((len(pairs), behaviors.outcomes, 1 + slot.max(initial=0)), np.int64)
    np.add.at(counts, (rows, outcome, slot), np.minimum(count, MOST + 1))
    first = np.full(len(pairs), np.nan)
    np.fmin.at(first, rows, table["first"].to_numpy().astype(np.float64))
    return Evidence(
        queries=[queries[code] for code in asked.tolist()],
        pointers=np.append(pointers, len(pairs)).astype(np.int64),
        items=[items[code] for code in (pairs % max(len(items), 1)).tolist()],
        stats=BehaviorStats(_checked(counts, path), behaviors),
        first_shown=first,
        last_time=about.last_time,
    )


def _coded(column: Any) -> tuple[list[str], Ints]:  # noqa: ANN401
    """Return the different texts in order, and the number of each row's."""
    coded = column.combine_chunks().dictionary_encode()
    texts = coded.dictionary.to_pylist()
    order = np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return [texts[at] for at in order], places[coded.indices.to_numpy()]


def _checked(counts: Ints, path: Path | None = None) -> SmallInts:
    """Return counts as they are stored; raise if they are too large."""
    if counts.max(initial=0) > MOST:
        raise DataError(TOO_MANY, path=path)
    return counts.astype(COUNT)


# --- features ------------------------------------------------------------------------------------


def _with_features(
    evidence: Evidence, path: Path, file: Path, missing: Literal["refuse", "drop"]
) -> Evidence:
    names, keys, numbers = _feature_table(file)
    places = {key: place for place, key in enumerate(keys)}
    if len(places) != len(keys):
        twice = next(key for at, key in enumerate(keys) if places[key] != at)
        raise DataError(f"{_called(twice)} has two rows of features", path=file)
    shared, pairs = isinstance(keys[0], str), evidence.pairs()
    own: Sequence[str | tuple[str, str]] = evidence.items if shared else pairs
    if own and places.keys().isdisjoint(own):
        raise DataError(
            f"no features for anything in {path}: the table has {_called(keys[0])}, the evidence "
            f"{_called(own[0])}",
            path=file,
            remedy="Write names exactly as in the log.",
        )
    lacking = [key for key in own if key not in places]
    if lacking and missing == "refuse":
        raise DataError(
            f"no features for {_called(lacking[0])} and {len(lacking) - 1:,} others in {path}",
            path=file,
            remedy="Add them, or read with missing='drop'.",
        )
    unseen = [str(key) for key in sorted(set(places) - set(own))] if shared else []
    candidates = [key for key in keys if isinstance(key, tuple)]
    if len(evidence.queries) == 1:  # whose candidates they must be
        candidates += [(evidence.queries[0], item) for item in unseen]
        unseen = []
    kept = [pair for pair, key in zip(pairs, own, strict=True) if key in places]
    evidence = _laid_out(evidence, pairs, [*kept, *candidates])
    own = evidence.items if shared else evidence.pairs()
    return replace(
        evidence,
        features=numbers[[places[key] for key in own]],
        feature_names=names,
        dropped=len(lacking),
        unseen={item: numbers[places[item]] for item in unseen},
        shared=shared,
    )


def _called(key: str | tuple[str, str]) -> str:
    return f"item {key!r}" if isinstance(key, str) else f"item {key[1]!r} of query {key[0]!r}"


def _feature_table(file: Path) -> tuple[tuple[str, ...], list[str | tuple[str, str]], Features]:
    """Return the names of the features, whose they are, and the numbers."""
    columns: dict[str, array[float]] = {}
    keys: list[str | tuple[str, str]] = []
    named: tuple[str, ...] = ()
    for line, row in rows(file):
        if not keys:
            named = tuple(name for name in NAMES if name in row)
            if "item" not in named:
                raise DataError(
                    f"no column 'item'; there are {', '.join(row)}",
                    path=file,
                    remedy="Rename the column of items to 'item'.",
                )
        names = [_name(file, line, name, row.get(name)) for name in named]
        for column, value in row.items():
            if column not in named:
                numbers = columns.setdefault(column, array("f"))
                numbers.extend([math.nan] * (len(keys) - len(numbers)))
                numbers.append(_number(file, line, column, value))
        keys.append(names[0] if len(names) == 1 else (names[0], names[1]))
    if not keys:
        raise DataError("no rows", path=file, remedy="Write one for each item.")
    if not columns:
        raise DataError("no features: all columns are names", path=file)
    for numbers in columns.values():
        numbers.extend([math.nan] * (len(keys) - len(numbers)))
    return tuple(columns), keys, np.stack([np.array(own) for own in columns.values()], axis=1)


def _name(file: Path, line: int, column: str, value: object) -> str:
    name = as_name(value)
    if not isinstance(name, str) or not name:
        remedy = "Names are texts or whole numbers."
        raise wrong_value(file, line, f"column {column!r}", value, remedy)
    return name


def _number(file: Path, line: int, column: str, value: object) -> float:
    number = as_number(value)
    if isinstance(number, str) or (number is not None and abs(number) > LARGEST):
        remedy = "Features are finite numbers: correct it, or leave out the column."
        raise wrong_value(file, line, f"column {column!r}", value, remedy)
    return math.nan if number is None else number


def _laid_out(
    evidence: Evidence, keys: Sequence[tuple[str, str]], wanted: Iterable[tuple[str, str]]
) -> Evidence:
    """Return the evidence with these rows, by query and item; those that nobody has seen are zeros.

    `keys` says to which of them each row of the evidence goes. Rows that go to the same one are
    added up; rows that go to none are left out.
    """
    order = sorted(set(wanted), key=_as_bytes)
    places = {key: place for place, key in enumerate(order)}
    rows = np.array([places.get(key, -1) for key in keys], np.int64)
    kept = rows >= 0
    rows = rows[kept]
    counts = np.zeros((len(order), *evidence.stats.counts.shape[1:]), np.int64)
    np.add.at(counts, rows, evidence.stats.counts[kept])
    first = np.full(len(order), np.nan)
    np.fmin.at(first, rows, evidence.first_shown[kept])
    given = features = evidence.features
    if given is not None:
        features = np.full((len(order), given.shape[1]), np.nan, np.float32)
        features[rows] = given[kept]
    sizes = Counter(query for query, _ in order)
    return replace(
        evidence,
        queries=list(sizes),
        pointers=np.array([0, *accumulate(sizes.values())], np.int64),
        items=[item for _, item in order],
        stats=BehaviorStats(_checked(counts), evidence.stats.behaviors),
        first_shown=first,
        features=features,
    )


def _as_bytes(key: tuple[str, str]) -> tuple[bytes, bytes]:
    """Return what names are ordered by."""
    return key[0].encode("utf-8", "surrogatepass"), key[1].encode("utf-8", "surrogatepass")
