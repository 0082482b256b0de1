"""Which features items have, their names, and where their numbers are in stored rows.

Features of a pair of query and item are in rows of the query's items, shared ones in rows of the
catalog. A feature keeps its column there forever, and models know it by that: no other feature ever
gets it. So features can be added, removed and renamed without touching a stored row. A row written
before a feature was added ends before its column, and the feature is missing there.

>>> schema = NO_FEATURES.begun([ItemIn("a", {"price": 3.0, "age": 1.0})])
>>> schema.rows([ItemIn("b", {"age": 2.0, "price": 5.0})], missing_allowed=False)
array([[5., 2.]], dtype=float32)
>>> later = schema.without("price").with_feature("stock", shared=True).with_feature("match")
>>> later.keys
('p1', 's0', 'p2')
>>> later.current(pair=np.float32([[5, 2]]), shared=np.float32([[7]]))
array([[ 2.,  7., nan]], dtype=float32)
>>> schema.rows([ItemIn("c", {"prize": 5.0})], missing_allowed=True)
Traceback (most recent call last):
ebrank.service.core.problems.Problem: item 'c' has an unknown feature 'prize' (known: price, age)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np

from ebrank.service.api import ItemIn
from ebrank.service.core.problems import Problem
from ebrank.service.store.base import StoreError
from ebrank.typing import Bools, Features

LARGEST = float(np.finfo(np.float32).max)
PAIR, SHARED = "p", "s"


@dataclass(frozen=True)
class Feature:
    """A feature: its key, and its name; None if it has only a position."""

    key: str
    name: str | None

    @classmethod
    def at(cls, column: int, name: str | None, *, shared: bool = False) -> Feature:
        """Return the feature in a column of the rows of its kind."""
        return cls(f"{SHARED if shared else PAIR}{column}", name)

    @property
    def shared(self) -> bool:
        """Whether all queries share it."""
        return self.key.startswith(SHARED)

    @property
    def column(self) -> int:
        """The column of its numbers."""
        return int(self.key[1:])


_Features: TypeAlias = list[tuple[Annotated[str, msgspec.Meta(pattern="^[ps][0-9]+$")], str | None]]


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    """A schema as stored: keys and names."""

    features: _Features
    removed: _Features


@dataclass(frozen=True)
class FeatureSchema:
    """The features that items have now, and those they had.

    Attributes:
        features: in the order of a model's input.
        removed: features that are gone but keep their columns.
    """

    features: tuple[Feature, ...] = ()
    removed: tuple[Feature, ...] = ()

    # --- how it comes about ----------------------------------------------------------------------

    @classmethod
    def positions(cls, count: int) -> FeatureSchema:
        """Return the schema of features with positions and no names."""
        return cls(tuple(Feature.at(place, None) for place in range(count)))

    def begun(self, items: Sequence[ItemIn]) -> FeatureSchema:
        """Return the schema that the first items of a query imply, besides shared features.

        It is the same if it already has features of query and item, or if these items have none.
        """
        first = next((item for item in items if item.features), None)
        if first is None or self.width(shared=False):
            return self
        if isinstance(first.features, list):
            return replace(
                self, features=(*self.positions(len(first.features)).features, *self.features)
            )
        given = (item.features for item in items)
        names = dict.fromkeys(
            name for features in given if isinstance(features, dict) for name in features
        )
        shared = [feature.name for feature in self.shared if feature.name in names]
        if shared:
            raise Problem(_not_here(first.id, str(shared[0]), shared=True), "items")
        return self.with_features(names)

    def begun_shared(self, item: ItemIn) -> FeatureSchema:
        """Return the schema that the first item of the catalog implies, besides other features."""
        if self.width(shared=True):
            return self
        if isinstance(item.features, list) or not item.features:
            raise Problem(
                f"item {item.id!r} is the first in the catalog: give at least one feature, by name",
                "items",
            )
        return self.with_features(item.features, shared=True)

    def with_features(self, names: Iterable[str], *, shared: bool = False) -> FeatureSchema:
        """Return it with more features, in new columns."""
        schema = self
        for name in names:
            schema = schema.with_feature(name, shared=shared)
        return schema

    def with_feature(self, name: str, *, shared: bool = False) -> FeatureSchema:
        """Return it with one more feature, in a new column."""
        self._check_free(name)
        column = self.width(shared=shared)
        return replace(self, features=(*self.features, Feature.at(column, name, shared=shared)))

    def without(self, name: str) -> FeatureSchema:
        """Return it without a feature."""
        gone = self.find(name)
        left = tuple(feature for feature in self.features if feature != gone)
        if not left:
            raise Problem(f"{name!r} is the only feature: add another one first", "remove")
        return FeatureSchema(left, (*self.removed, gone))

    def renamed(self, old: str, new: str) -> FeatureSchema:
        """Return it with a feature renamed."""
        self._check_free(new)
        feature = self.find(old)
        return self._with_names({feature.key: new})

    def with_names(self, names: Sequence[str]) -> FeatureSchema:
        """Return it with names for the features that have none, in their order."""
        nameless = [feature.key for feature in self.features if feature.name is None]
        if len(names) != len(nameless):
            raise Problem(f"{len(names)} names for {len(nameless)} features without a name", "name")
        schema = self
        for key, name in zip(nameless, names, strict=True):
            schema._check_free(name)
            schema = schema._with_names({key: name})
        return schema

    def find(self, name: str) -> Feature:
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

    def _with_names(self, names: dict[str, str]) -> FeatureSchema:
        return replace(
            self,
            features=tuple(
                replace(feature, name=names.get(feature.key, feature.name))
                for feature in self.features
            ),
        )

    def to_json(self) -> str:
        """Return it as text, for the store."""
        lists = (self.features, self.removed)
        document = _Document(*([(one.key, one.name) for one in some] for some in lists))
        return msgspec.json.encode(document).decode()

    @classmethod
    def from_json(cls, text: str) -> FeatureSchema:
        """Return what `to_json` wrote.

        Raises:
            StoreError: if it is anything else.
        """
        try:
            document = msgspec.json.decode(text, type=_Document)
        except (msgspec.DecodeError, UnicodeError) as problem:
            raise StoreError(
                f"the store is damaged: its list of features cannot be read ({problem}). "
                "Restore the latest backup"
            ) from problem
        lists = (document.features, document.removed)
        return cls(*(tuple(Feature(key, name) for key, name in some) for some in lists))

    # --- what it holds ---------------------------------------------------------------------------

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys of its features; models keep them to find their input again."""
        return tuple(feature.key for feature in self.features)

    @cached_property
    def pair(self) -> tuple[Feature, ...]:
        """Features of a pair of query and item."""
        return tuple(feature for feature in self.features if not feature.shared)

    @cached_property
    def shared(self) -> tuple[Feature, ...]:
        """Features that all queries share."""
        return tuple(feature for feature in self.features if feature.shared)

    @cached_property
    def pair_places(self) -> list[int]:
        """The places of the features of query and item among all."""
        return [place for place, feature in enumerate(self.features) if not feature.shared]

    @cached_property
    def _plain(self) -> bool:
        """Whether stored rows of queries need no change: nothing is shared or removed."""
        return self.keys == self.positions(len(self.features)).keys

    @property
    def text(self) -> str:
        """Its features, for people."""
        return _listed(self.features) or "none"

    def width(self, *, shared: bool) -> int:
        """Return how many columns rows of a kind have."""
        return self._widths[shared]

    @cached_property
    def _widths(self) -> tuple[int, int]:
        both = (*self.features, *self.removed)
        pair, shared = (
            max((one.column + 1 for one in both if one.shared == kind), default=0)
            for kind in (False, True)
        )
        return pair, shared

    # --- rows ------------------------------------------------------------------------------------

    def rows(
        self,
        items: Sequence[ItemIn],
        *,
        missing_allowed: bool,
        shared: bool = False,
        exempt: Collection[str] = (),
    ) -> Features:
        """Return items' features of a kind as rows to store, NaN where one is missing.

        Items that are `exempt` may always lack features.

        Raises:
            Problem: naming the item and the feature.
        """
        some = self.shared if shared else self.pair
        names = [feature.name for feature in some]
        pick = self._picks[shared]
        values = [self._values(item, names, pick, shared) for item in items]
        numbers = np.array(values, np.float64).reshape(len(items), len(some))
        odd = ~(np.abs(numbers) <= LARGEST).all(axis=1)
        for place in np.flatnonzero(odd).tolist():
            name = items[place].id
            _check(name, values[place], names, missing_allowed or name in exempt)
        width, columns = self.width(shared=shared), [feature.column for feature in some]
        if columns == list(range(width)):
            return numbers.astype(np.float32)
        stored = np.full((len(items), width), np.nan, np.float32)
        stored[:, columns] = numbers
        return stored

    def current(self, pair: Features, shared: Features) -> Features:
        """Return the features of items as they are now, given their stored rows."""
        if self._plain and pair.shape[1] == len(self.features):
            return pair
        features = np.full((len(pair), len(self.features)), np.nan, np.float32)
        for place, feature in enumerate(self.features):
            stored = shared if feature.shared else pair
            if feature.column < stored.shape[1]:
                features[:, place] = stored[:, feature.column]
        return features

    @cached_property
    def _picks(self) -> tuple[Callable[..., Any] | None, ...]:
        """Takes all features of a kind out of a mapping at once, if there are several."""
        names = ([one.name for one in some] for some in (self.pair, self.shared))
        return tuple(itemgetter(*some) if len(some) > 1 else None for some in names)

    def _values(
        self,
        item: ItemIn,
        names: Sequence[str | None],
        pick: Callable[..., Any] | None,
        shared: bool,
    ) -> Sequence[float | None]:
        given = item.features
        if pick is not None and type(given) is dict and len(given) == len(names):
            try:
                values: tuple[float | None, ...] = pick(given)
            except KeyError:
                pass
            else:
                return values
        if isinstance(given, list):
            if len(given) != len(names):
                raise Problem(
                    f"item {item.id!r} has {len(given)} features, not {len(names)}", "items"
                )
            return given
        found = [None if name is None else given.get(name) for name in names]
        if len(given) > len(names) - found.count(None):  # or some were given as null
            self._check_names(item.id, given, names, shared)
        return found

    def _check_names(
        self,
        item: str,
        given: dict[str, float | None],
        names: Sequence[str | None],
        shared: bool,
    ) -> None:
        unknown = given.keys() - set(names)
        if not unknown:
            return
        if None in names:
            raise Problem(
                f"item {item!r} names its features, but the first items had {len(names)} by "
                f"position. Send a list of {len(names)}, or name them: "
                "`ebrank features STORE name`",
                "items",
            )
        name = min(unknown)
        if any(feature.name == name for feature in self.features):
            raise Problem(_not_here(item, name, shared=not shared), "items")
        known = _listed(self.shared if shared else self.pair)
        raise Problem(f"item {item!r} has an unknown feature {name!r} (known: {known})", "items")


NO_FEATURES = FeatureSchema()


def _check(
    item: str,
    values: Sequence[float | None],
    names: Sequence[str | None],
    missing_allowed: bool,
) -> None:
    for place, (value, name) in enumerate(zip(values, names, strict=True), start=1):
        called = f"feature {place}" if name is None else f"feature {name!r}"
        if value is None and not missing_allowed:
            raise Problem(
                f"item {item!r} lacks {called}; missing values are rejected (features.missing)",
                "items",
            )
        if value is not None and not abs(value) <= LARGEST:
            raise Problem(f"item {item!r}: {called} is {value:g}, too large", "items")


def _not_here(item: str, name: str, *, shared: bool) -> str:
    if shared:
        return (
            f"item {item!r} has a feature {name!r}, which all queries share: it belongs in "
            "PUT /v1/items"
        )
    return (
        f"item {item!r} has a feature {name!r}, which depends on the query: it belongs in "
        "PUT /v1/queries/{query}/items"
    )


def _listed(features: Sequence[Feature]) -> str:
    nameless = sum(feature.name is None for feature in features)
    names = [feature.name for feature in features if feature.name is not None]
    return ", ".join([*([f"{nameless} without names"] if nameless else []), *names])


def matched(features: Features, have: Sequence[str], want: Sequence[str]) -> Features:
    """Return the features that a model wants, by their keys; 0 for removed ones.

    A model without keys takes features as they are.

    >>> matched(np.float32([[1, 2]]), have=("p0", "p2"), want=("p2", "p1", "p0"))
    array([[2., 0., 1.]], dtype=float32)
    """
    if not want or tuple(have) == tuple(want):
        return features
    places = {key: place for place, key in enumerate(have)}
    found = np.zeros((len(features), len(want)), np.float32)
    for place, key in enumerate(want):
        if key in places:
            found[:, place] = features[:, places[key]]
    return found


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
    known = (~missing[counted]).sum(axis=0)
    sums = np.where(missing, 0.0, features)[counted].sum(axis=0, dtype=np.float64)
    means = sums / np.maximum(known, 1) if by_mean else np.zeros(features.shape[1])
    return np.where(missing, means, features).astype(np.float32)
