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

from ebrank.addons.logs.evidence_file import COLUMNS, EvidenceMetadata, read_table
from ebrank.addons.tables import as_name, as_number, rows, wrong_value
from ebrank.environment.paths import expanded
from ebrank.errors import DataError
from ebrank.evidence import Behaviors, BehaviorStats
from ebrank.evidence.slots import SLOTS
from ebrank.evidence.stats import COUNT, TOO_MANY
from ebrank.model.policy.scaling import Scaling
from ebrank.typing import Features, Floats, Ints

NAMES = ("query", "item")
LARGEST = float(np.finfo(np.float32).max)
KEY = (*NAMES, "outcome", "slot")
"""What a row counts; a file has them in this order."""


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
    _check(path, about.behaviors, table)
    columns = _added_up(table).combine_chunks()
    _check(path, about.behaviors, columns)
    query_codes, queries = _coded(columns["query"])
    item_codes, names = _coded(columns["item"])
    outcome, slot, count = _places(columns)
    begins = _changes(query_codes, item_codes)
    rows = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    slots = 1 + int(slot.max(initial=0))
    counts = np.zeros((len(starts), about.behaviors.outcomes, slots), COUNT)
    counts[rows, outcome, slot] = count
    shown = np.full(len(starts), np.nan)
    np.fmin.at(shown, rows, columns["first"].to_numpy(zero_copy_only=False).astype(np.float64))
    owners = query_codes[starts]
    pointers = np.flatnonzero(_changes(owners))
    return Evidence(
        queries=[queries[code] for code in owners[pointers].tolist()],
        pointers=np.append(pointers, len(starts)).astype(np.int64),
        items=[names[code] for code in item_codes[starts].tolist()],
        stats=BehaviorStats(counts, about.behaviors),
        first_shown=shown,
        last_time=about.last_time,
    )


def _added_up(table: Any) -> Any:  # noqa: ANN401
    """Return the rows in order, with duplicates merged: files may have been combined."""
    added = table.group_by(KEY).aggregate([("count", "sum"), ("first", "min")])
    return added.rename_columns(COLUMNS).sort_by([(name, "ascending") for name in KEY])


def _coded(column: Any) -> tuple[Ints, list[str]]:  # noqa: ANN401
    """Return texts as numbers, and the text of each number."""
    if not len(column):
        return np.zeros(0, np.int64), []
    coded = column.combine_chunks().dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()


def _changes(*codes: Ints) -> Any:  # noqa: ANN401 (an array of bools)
    """Return where a row differs from the one before."""
    differs = np.zeros(len(codes[0]), np.bool_)
    differs[:1] = True
    for values in codes:
        differs[1:] |= values[1:] != values[:-1]
    return differs


def _places(table: Any) -> tuple[Ints, Ints, Ints]:  # noqa: ANN401
    """Return the outcomes, slots and counts."""
    outcome, slot, count = (table[name].to_numpy() for name in ("outcome", "slot", "count"))
    return outcome, slot, count


def _check(path: Path, behaviors: Behaviors, table: Any) -> None:  # noqa: ANN401
    """Raise at what cannot be evidence; a count is too large if sums of such could overflow."""
    outcome, slot, count = _places(table)
    wrong = (outcome < 0) | (outcome >= behaviors.outcomes) | (slot < 0) | (slot >= SLOTS)
    wrong |= count < 1
    if wrong.any():
        raise DataError(
            f"row {int(np.flatnonzero(wrong)[0]) + 1} counts something unknown",
            path=path,
            remedy="Make it again with `ebrank aggregate`.",
        )
    if count.max(initial=0) > np.iinfo(COUNT).max:
        raise DataError(TOO_MANY, path=path)


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
    unseen = [str(key) for key in sorted(set(places) - set(own))] if shared else []
    candidates = [key for key in keys if isinstance(key, tuple)]
    if len(evidence.queries) == 1:  # whose candidates they must be
        candidates += [(evidence.queries[0], item) for item in unseen]
        unseen = []
    if candidates:
        evidence = _laid_out(evidence, pairs, [*pairs, *candidates])
        pairs = evidence.pairs()
        own = evidence.items if shared else pairs
    rows = np.array([places.get(key, -1) for key in own], np.int64)
    lacking = np.flatnonzero(rows < 0)
    if len(lacking) and missing == "refuse":
        raise DataError(
            f"no features for {_called(own[lacking[0]])} and {len(lacking) - 1:,} others in {path}",
            path=file,
            remedy="Add them, or read with missing='drop'.",
        )
    features = np.full((len(evidence), len(names)), np.nan, np.float32)
    features[rows >= 0] = numbers[rows[rows >= 0]]
    evidence = replace(
        evidence,
        features=features,
        feature_names=names,
        unseen={item: numbers[places[item]] for item in unseen},
        shared=shared,
    )
    if not len(lacking):
        return evidence
    kept = [pair for pair, row in zip(pairs, rows.tolist(), strict=True) if row >= 0]
    return replace(_laid_out(evidence, pairs, kept), dropped=len(lacking))


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
    if counts.max(initial=0) > np.iinfo(COUNT).max:
        raise DataError(TOO_MANY)
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
        stats=BehaviorStats(counts.astype(COUNT), evidence.stats.behaviors),
        first_shown=first,
        features=features,
    )


def _as_bytes(key: tuple[str, str]) -> tuple[bytes, bytes]:
    """Return what names are ordered by."""
    return key[0].encode("utf-8", "surrogatepass"), key[1].encode("utf-8", "surrogatepass")
