"""Which features items have, their names, and where their numbers are in stored rows.

Features of a pair of query and item are in rows of the query's items, shared ones in rows of the
catalog. A feature keeps its column there forever, and models know it by that: no other feature ever
gets it. So features can be added, removed and renamed without touching a stored row. A row written
before a feature was added ends before its column, and the feature is missing there.

Items may leave out a feature that was added later, and may still send one that was removed: callers
change one by one, after the schema.

>>> schema = NO_FEATURES.begun([ItemIn("a", {"price": 3.0, "age": 1.0})])
>>> schema.pair.rows([ItemIn("b", {"age": 2.0, "price": 5.0})], missing_allowed=False)
array([[5., 2.]], dtype=float32)
>>> later = schema.without("price").with_features("stock", shared=True).with_features("match")
>>> later.keys
('p1', 's0', 'p2')
>>> later.joined(["a"], pair=np.float32([[5, 2]]), catalog={"a": np.float32([7])})
(array([[ 2.,  7., nan]], dtype=float32), array([False]))
>>> schema.pair.rows([ItemIn("c", {"prize": 5.0})], missing_allowed=True)
Traceback (most recent call last):
ebrank.service.core.problems.Problem: item 'c' has an unknown feature 'prize' (known: price, age)...
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Annotated, TypeAlias

import msgspec
import numpy as np

from ebrank.service.api import ItemIn
from ebrank.service.core.problems import Problem
from ebrank.service.store.base import StoreError
from ebrank.typing import Bools, Features

LARGEST = float(np.finfo(np.float32).max)
PAIR, SHARED = "p", "s"


@dataclass(frozen=True)
class FeatureColumn:
    """A feature.

    Attributes:
        key: its kind and column.
        name: None if it has only a position.
        optional: whether items may lack it even if missing values are rejected.
    """

    key: str
    name: str | None
    optional: bool = False

    @property
    def shared(self) -> bool:
        """Whether all queries share it."""
        return self.key.startswith(SHARED)

    @property
    def column(self) -> int:
        """The column of its numbers."""
        return int(self.key[1:])


_Features: TypeAlias = list[tuple[Annotated[str, msgspec.Meta(pattern="^[ps][0-9]+$")], str | None]]


class _Document(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A schema as stored: keys and names, the keys of optional features, and the mark."""

    features: _Features
    removed: _Features
    optional: list[str] = []
    mark: int | None = None


@dataclass(frozen=True)
class FeatureSchema:
    """The features that items have now, and those they had.

    Attributes:
        features: in the order of a model's input.
        removed: features that are gone but keep their columns.
        mark: the column of the catalog's rows that says which items are withdrawn; None as long as
            none ever was.
    """

    features: tuple[FeatureColumn, ...] = ()
    removed: tuple[FeatureColumn, ...] = ()
    mark: int | None = None

    # --- how it comes about ----------------------------------------------------------------------

    @classmethod
    def positions(cls, count: int) -> FeatureSchema:
        """Return the schema of features with positions and no names."""
        return cls(tuple(FeatureColumn(f"{PAIR}{column}", None) for column in range(count)))

    def or_positions(self, count: int) -> FeatureSchema:
        """Return it, or a schema of unnamed columns if no feature is declared."""
        return self if self.features else self.positions(count)

    def begun(self, items: Sequence[ItemIn]) -> FeatureSchema:
        """Return the schema that the first items of a query imply, besides shared features.

        It is the same if it already has features of query and item, or if these items have none.
        """
        first = next((item for item in items if item.features), None)
        if first is None or self.pair.width:
            return self
        if isinstance(first.features, list):
            return replace(
                self, features=(*self.positions(len(first.features)).features, *self.features)
            )
        given = (item.features for item in items)
        names = dict.fromkeys(
            name for features in given if isinstance(features, dict) for name in features
        )
        shared = [name for name in self.shared.names if name in names]
        if shared:
            raise Problem(_not_here(first.id, str(shared[0]), shared=True), "items")
        return self.with_features(*names)

    def begun_shared(self, item: ItemIn) -> FeatureSchema:
        """Return the schema that the first item of the catalog implies, besides other features."""
        if self.shared.width:
            return self
        if isinstance(item.features, list) or not item.features:
            raise Problem(
                f"item {item.id!r} is the first in the catalog: give at least one feature, by name",
                "items",
            )
        return self.with_features(*item.features, shared=True)

    def with_features(
        self, *names: str, shared: bool = False, optional: bool = False
    ) -> FeatureSchema:
        """Return it with more features, in new columns."""
        schema, key = self, SHARED if shared else PAIR
        width = (self.shared if shared else self.pair).width
        for column, name in enumerate(names, start=width):
            schema._check_free(name)
            added = FeatureColumn(f"{key}{column}", name, optional)
            schema = replace(schema, features=(*schema.features, added))
        return schema

    def without(self, name: str) -> FeatureSchema:
        """Return it without a feature."""
        gone = self.find(name)
        left = tuple(feature for feature in self.features if feature != gone)
        if not left:
            raise Problem(f"{name!r} is the only feature: add another one first", "remove")
        removed = (*self.removed, replace(gone, optional=False))
        return replace(self, features=left, removed=removed)

    def renamed(self, old: str, new: str) -> FeatureSchema:
        """Return it with a feature renamed."""
        self._check_free(new)
        return self._with(replace(self.find(old), name=new))

    def requiring(self, name: str) -> FeatureSchema:
        """Return it with a feature that items must have if missing values are rejected."""
        return self._with(replace(self.find(name), optional=False))

    def with_names(self, names: Sequence[str]) -> FeatureSchema:
        """Return it with names for the features that have none, in their order."""
        nameless = [feature for feature in self.features if feature.name is None]
        if len(names) != len(nameless):
            raise Problem(f"{len(names)} names for {len(nameless)} features without a name", "name")
        schema = self
        for feature, name in zip(nameless, names, strict=True):
            schema._check_free(name)
            schema = schema._with(replace(feature, name=name))
        return schema

    def find(self, name: str) -> FeatureColumn:
        """Return the feature with a name.

        Raises:
            Problem: if there is none.
        """
        for feature in self.features:
            if feature.name == name:
                return feature
        raise Problem(f"there is no feature {name!r}, only {self.text}")

    def _check_free(self, name: str) -> None:
        if any(feature.name == name for feature in self.features):
            raise Problem(f"there is already a feature {name!r}")

    def _with(self, changed: FeatureColumn) -> FeatureSchema:
        """Return it with one of its features changed."""
        return replace(
            self,
            features=tuple(
                changed if feature.key == changed.key else feature for feature in self.features
            ),
        )

    def to_json(self) -> str:
        """Return it as text, for the store."""
        document = _Document(
            features=[(feature.key, feature.name) for feature in self.features],
            removed=[(feature.key, feature.name) for feature in self.removed],
            optional=[feature.key for feature in self.features if feature.optional],
            mark=self.mark,
        )
        return msgspec.json.encode(document).decode()

    @classmethod
    def from_json(cls, text: str | None) -> FeatureSchema:
        """Return what `to_json` wrote; no features if it never did.

        Raises:
            StoreError: if it is anything else.
        """
        if text is None:
            return NO_FEATURES
        try:
            document = msgspec.json.decode(text, type=_Document)
        except (msgspec.DecodeError, UnicodeError) as problem:
            raise StoreError(
                f"the store is damaged: its list of features cannot be read ({problem}). "
                "Restore the latest backup"
            ) from problem
        return cls(
            tuple(
                FeatureColumn(key, name, key in document.optional)
                for key, name in document.features
            ),
            tuple(FeatureColumn(key, name) for key, name in document.removed),
            document.mark,
        )

    # --- what it holds ---------------------------------------------------------------------------

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys of its features; models keep them to find their input again."""
        return tuple(feature.key for feature in self.features)

    @cached_property
    def pair(self) -> FeatureKind:
        """Features of a pair of query and item."""
        return FeatureKind(self, shared=False)

    @cached_property
    def shared(self) -> FeatureKind:
        """Features that all queries share."""
        return FeatureKind(self, shared=True)

    @cached_property
    def _plain(self) -> bool:
        """Whether stored rows of queries need no change: nothing is shared or removed."""
        return self.keys == self.positions(len(self.features)).keys

    @property
    def text(self) -> str:
        """Its features, for people."""
        return _listed(self.features) or "none"

    # --- rows of the catalog ---------------------------------------------------------------------

    def withdrawn(self, row: Features) -> bool:
        """Return whether a catalog row marks a withdrawn item.

        >>> schema = NO_FEATURES.with_features("price", shared=True)
        >>> marking, row = schema.marked(np.float32([3]))
        >>> marking.withdrawn(row), marking.withdrawn(np.float32([3]))
        (True, False)
        """
        return self.mark is not None and len(row) > self.mark and not np.isnan(row[self.mark])

    def marked(self, row: Features) -> tuple[FeatureSchema, Features]:
        """Return a catalog row marked as withdrawn, and the schema that defines the mark.

        A row that is put again has no mark.
        """
        mark = self.shared.width if self.mark is None else self.mark
        schema = replace(self, mark=mark)
        marked = np.full(schema.shared.width, np.nan, np.float32)
        marked[: len(row)] = row
        marked[mark] = 1.0
        return schema, marked

    def joined(
        self, names: Sequence[str], pair: Features, catalog: Mapping[str, Features]
    ) -> tuple[Features, Bools]:
        """Return the features of items as they are now, and which the catalog has withdrawn.

        Their rows as stored are given; an item that the catalog does not have lacks what is shared.
        """
        rows = [catalog.get(name) for name in names]
        marks = (row is not None and self.withdrawn(row) for row in rows)
        withdrawn = np.fromiter(marks, np.bool_, len(names))
        if self._plain and pair.shape[1] == len(self.features):
            return pair, withdrawn
        width = self.shared.width
        shared = np.full((len(names), width), np.nan, np.float32)
        for place, row in enumerate(rows):
            if row is not None:
                shared[place, : len(row)] = row[:width]
        features = np.full((len(names), len(self.features)), np.nan, np.float32)
        for place, feature in enumerate(self.features):
            stored = shared if feature.shared else pair
            if feature.column < stored.shape[1]:
                features[:, place] = stored[:, feature.column]
        return features, withdrawn


class FeatureKind:
    """The features of query and item, or those that all queries share, and rows that hold them.

    Attributes:
        features: in the order of a model's input.
        names: of these features.
        columns: of these features in the rows.
        places: of these features among all.
        width: how many columns rows have.
    """

    def __init__(self, schema: FeatureSchema, *, shared: bool) -> None:
        self._schema = schema
        self._shared = shared
        self.features = [feature for feature in schema.features if feature.shared == shared]
        self.names = [feature.name for feature in self.features]
        self.columns = [feature.column for feature in self.features]
        self.places = [schema.features.index(feature) for feature in self.features]
        self._removed = [feature for feature in schema.removed if feature.shared == shared]
        columns = [feature.column for feature in (*self.features, *self._removed)]
        if shared and schema.mark is not None:
            columns.append(schema.mark)
        self.width = 1 + max(columns, default=-1)
        # Takes all features out of a mapping at once, if there are several.
        self._pick = itemgetter(*self.names) if len(self.names) > 1 else None

    def rows(
        self, items: Sequence[ItemIn], *, missing_allowed: bool, exempt: Collection[str] = ()
    ) -> Features:
        """Return items' features as rows to store, NaN where one is missing.

        Items that are `exempt` may always lack features, and others those that are optional.

        Raises:
            Problem: naming the item and the feature.
        """
        values = [self._values(item) for item in items]
        numbers = np.array(values, np.float64).reshape(len(items), len(self.features))
        odd = ~(np.abs(numbers) <= LARGEST).all(axis=1)
        for place in np.flatnonzero(odd).tolist():
            name = items[place].id
            self._check(name, values[place], missing_allowed or name in exempt)
        if self.columns == list(range(self.width)):
            return numbers.astype(np.float32)
        stored = np.full((len(items), self.width), np.nan, np.float32)
        stored[:, self.columns] = numbers
        return stored

    def lacking(self, rows: Features) -> list[int]:
        """Return which rows lack a feature."""
        return np.flatnonzero(np.isnan(rows[:, self.columns]).any(axis=1)).tolist()

    def keep(self, row: Features, item: ItemIn, before: Features) -> bool:
        """Let an item keep the features that it leaves out, given its row as stored before.

        One that it gives as null becomes missing. Return whether the row now depends on the other.
        """
        given: Collection[str | None] = (
            item.features if isinstance(item.features, dict) else self.names[: len(item.features)]
        )
        columns = [feature.column for feature in self.features if feature.name not in given]
        kept = [column for column in columns if column < len(before)]
        row[kept] = before[kept]
        return bool(kept)

    def _values(self, item: ItemIn) -> Sequence[float | None]:
        given, names = item.features, self.names
        if self._pick is not None and type(given) is dict and len(given) == len(names):
            try:
                values: tuple[float | None, ...] = self._pick(given)
            except KeyError:
                pass
            else:
                return values
        if isinstance(given, list):
            if len(given) == len(names):
                return given
            left_out = self.features[len(given) :]
            if not left_out or not all(feature.optional for feature in left_out):
                raise Problem(
                    f"item {item.id!r} has {len(given)} features, not {len(names)}", "items"
                )
            return [*given, *[None] * len(left_out)]
        picked = [None if name is None else given.get(name) for name in names]
        if len(given) > len(names) - picked.count(None):  # or some were given as null
            self._check_names(item.id, given)
        return picked

    def _check_names(self, item: str, given: dict[str, float | None]) -> None:
        unknown = given.keys() - {*self.names, *(feature.name for feature in self._removed)}
        if not unknown:
            return
        if None in self.names:
            count = len(self.names)
            raise Problem(
                f"item {item!r} names its features, but the first items had {count} by position. "
                f"Send a list of {count}, or name them: `ebrank features STORE name`",
                "items",
            )
        name = min(unknown)
        if any(feature.name == name for feature in self._schema.features):
            raise Problem(_not_here(item, name, shared=not self._shared), "items")
        raise Problem(
            f"item {item!r} has an unknown feature {name!r} (known: {_listed(self.features)}). If "
            "it is new, add it first: `ebrank features STORE add`",
            "items",
        )

    def _check(self, item: str, values: Sequence[float | None], missing_allowed: bool) -> None:
        for place, (value, feature) in enumerate(zip(values, self.features, strict=True), start=1):
            called = f"feature {place}" if feature.name is None else f"feature {feature.name!r}"
            if value is None and not (missing_allowed or feature.optional):
                raise Problem(
                    f"item {item!r} lacks {called}; missing values are rejected (features.missing)",
                    "items",
                )
            if value is not None and not abs(value) <= LARGEST:
                raise Problem(f"item {item!r}: {called} is {value:g}, too large", "items")


NO_FEATURES = FeatureSchema()


def _not_here(item: str, name: str, *, shared: bool) -> str:
    why, where = "depends on the query", "PUT /v1/queries/{query}/items"
    if shared:
        why, where = "all queries share", "PUT /v1/items"
    return f"item {item!r} has a feature {name!r}, which {why}: it belongs in {where}"


def _listed(features: Sequence[FeatureColumn]) -> str:
    nameless = sum(feature.name is None for feature in features)
    names = [feature.name for feature in features if feature.name is not None]
    return ", ".join([*([f"{nameless} without names"] if nameless else []), *names])


def matched(features: Features, have: Sequence[str], want: Sequence[str]) -> Features:
    """Return the features that a model uses, by their keys; 0 for removed ones.

    A model without keys takes features as they are.

    >>> matched(np.float32([[1, 2]]), have=("p0", "p2"), want=("p2", "p1", "p0"))
    array([[2., 0., 1.]], dtype=float32)
    """
    if not want or tuple(have) == tuple(want):
        return features
    places = {key: place for place, key in enumerate(have)}
    wanted = np.zeros((len(features), len(want)), np.float32)
    for place, key in enumerate(want):
        if key in places:
            wanted[:, place] = features[:, places[key]]
    return wanted


def filled(features: Features, *, by_mean: bool, among: Bools | None = None) -> Features:
    """Return a query's features with missing values filled in: with 0, or with its items' mean.

    `among` marks the items to average, such as the current candidates.

    >>> filled(np.array([[1.0], [np.nan], [3.0]], dtype=np.float32), by_mean=True).ravel()
    array([1., 2., 3.], dtype=float32)
    """
    missing = np.isnan(features)
    if not missing.any():
        return features
    counted = slice(None) if among is None else among
    given = (~missing[counted]).sum(axis=0)
    sums = np.where(missing, 0.0, features)[counted].sum(axis=0, dtype=np.float64)
    means = sums / np.maximum(given, 1) if by_mean else np.zeros(features.shape[1])
    return np.where(missing, means, features).astype(np.float32)
