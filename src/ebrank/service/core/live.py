"""A query in memory, which follows the log.

A `LiveQuery` is a `QueryState` that takes the step of each write. It also keeps the prior of its
candidates, which is costly to compute and rarely changes.

Other servers may write to the same store. Each write returns the query's version. If it is one more
than the version in memory, no other server wrote, and memory takes the same step. Otherwise memory
is out of date. Usually the write also returns what others have counted since; if not, the query is
dropped, and read again before its next list.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from ebrank.evidence import CLICKS, Behaviors, BehaviorStats
from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.stats import COUNT
from ebrank.model.formula import ItemPrior
from ebrank.service.core.catalog import Changes
from ebrank.service.core.feature_schema import filled
from ebrank.service.core.memory import PackedStrings, encode
from ebrank.service.core.models import Model
from ebrank.service.store import counting
from ebrank.service.store.counting import Change
from ebrank.service.store.records import LIFE, Hint, NewItem, News, QueryState
from ebrank.typing import Bools, Features, Ints, SmallInts

NO_COUNTS: SmallInts = np.zeros((0, 2, 1), COUNT)
QUERY_BYTES, ITEM_BYTES = 3600, 57
"""What an unpacked query takes, and each of its items, besides its name, features and counts."""
LARGE, INDEX_BYTES = 1000, 150
"""From this many items on a query keeps the rows of all by name, which takes this much for each."""
USUAL_SLOTS, USUAL_BYTES = 10, 2
"""Counts grow to this many slots with a query's first list of ten, and to this many bytes each."""

COUNT_TYPES: Mapping[int, Any] = {1: np.uint8, 2: np.uint16, 4: COUNT}
"""Types of counts, by their bytes."""
LARGEST_COUNTS = {size: int(np.iinfo(kind).max) for size, kind in COUNT_TYPES.items()}
"""The largest count of each type, by its bytes."""

Counts: TypeAlias = npt.NDArray[np.integer[Any]]
"""Whole numbers of any size."""

_STORED = {"entered": np.float64, "first_shown": np.float64, "active": np.bool_}
_OWN = {
    "tie_keys": np.uint32,
    "withdrawn": np.bool_,
    "found_after": np.float32,
    "explored_first": np.bool_,
}
"""Per-item arrays: those of the state, and those kept only in memory."""


@dataclass(eq=False, slots=True)
class LiveQuery:
    """A query's items, their counters, and the prior of its candidates.

    A row is an item's place in the arrays; it never changes.

    Attributes:
        state: what the store would load, except the counts.
        ids: the items' names.
        counts: what users did, shape (items, outcomes, slots), in as few bytes as needed.
        seed: of `tie_keys`.
        since: when it was read; what is not stored is observed from then on.
        behaviors: those with an outcome.
        keys: of the features in the columns of `state.features`: those of query and item, joined
            with shared ones.
        catalog: the version of the catalog that they were joined with.
        tie_keys: order equal scores, one number per item.
        withdrawn: which items the catalog has withdrawn from all queries.
        found_after: how long after entering an item was first listed for its relevance rather than
            by exploration, in seconds; NaN if that has not been observed.
        explored_first: whether exploration showed it first.
        changed: rows whose counts have changed since somebody emptied it; None if any may have.
    """

    state: QueryState
    ids: PackedStrings
    counts: Counts
    seed: int
    since: float
    behaviors: Behaviors
    keys: Sequence[str]
    catalog: int
    tie_keys: npt.NDArray[np.uint32]
    withdrawn: Bools
    found_after: npt.NDArray[np.float32]
    explored_first: Bools
    changed: set[int] | None = None
    _active: Bools | None = None
    _candidates: Ints | None = None
    _prior: ItemPrior | None = None
    _prior_of: tuple[int, str] = (-1, "")
    _rows: dict[str, int] | None = None
    _first_entered: float | None = None

    @classmethod
    def read(
        cls,
        state: QueryState,
        *,
        seed: int,
        since: float,
        behaviors: Behaviors = CLICKS,
        keys: Sequence[str] = (),
        catalog: int = 0,
    ) -> LiveQuery:
        """Return a query that was read from the store; raise if its counts are impossible."""
        ids, items = PackedStrings(state.ids), len(state.ids)
        checked = BehaviorStats(stacked([state.counts], behaviors), behaviors)
        return cls(
            replace(state, ids=ids, counts=NO_COUNTS),
            ids,
            compact(checked.counts),
            seed,
            since,
            behaviors,
            keys,
            catalog,
            tie_keys=_tie_keys(state.query, state.ids, seed),
            withdrawn=np.zeros(items, np.bool_),
            found_after=np.full(items, np.nan, np.float32),
            explored_first=np.zeros(items, np.bool_),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size(self) -> int:
        """The bytes that it takes, or will take once lists of it are served."""
        _, outcomes, slots = self.counts.shape
        of_counts = max(self.counts.itemsize, USUAL_BYTES) * outcomes * max(slots, USUAL_SLOTS)
        of_item = ITEM_BYTES + self.state.features.itemsize * self.state.features.shape[1]
        if len(self) >= LARGE:
            of_item += INDEX_BYTES
        return int(QUERY_BYTES + len(self.ids.parts[0]) + len(self) * (of_item + of_counts))

    def packed(self) -> bytes:
        """Return everything except its name and what can be computed again."""
        state, counts, (text, ends) = self.state, self.counts, self.ids.parts
        parts = [
            *((state.version, state.epoch, self.catalog, self.since), text, ends.tobytes()),
            *((state.features.shape[1], counts.itemsize, *counts.shape[1:]), counts.tobytes()),
            state.features.tobytes(),
            *(getattr(state, name).tobytes() for name in _STORED),
            *(getattr(self, name).tobytes() for name in _OWN),
        ]
        return msgspec.msgpack.encode(parts)

    @classmethod
    def unpacked(
        cls, query: str, data: bytes, *, seed: int, behaviors: Behaviors, keys: Sequence[str] = ()
    ) -> LiveQuery:
        """Return a query with this name as it was when it was packed."""
        numbers, text, ends, shape, counts, features, *rest = msgspec.msgpack.decode(data)
        version, epoch, catalog, since = numbers
        columns, width, outcomes, slots = shape
        ids = PackedStrings.of_parts(text, array("I", ends))
        kinds = (*_STORED.values(), *_OWN.values())
        arrays: list[Any] = [
            np.frombuffer(part, kind).copy() for part, kind in zip(rest, kinds, strict=True)
        ]
        table = np.frombuffer(features, np.float32).copy().reshape(len(ids), columns)
        entered, first_shown, active, *own = arrays
        state = QueryState(
            query, ids, table, NO_COUNTS, entered, first_shown, active, version, epoch
        )
        counted = np.frombuffer(counts, COUNT_TYPES[width]).copy().reshape(-1, outcomes, slots)
        return cls(state, ids, counted, seed, since, behaviors, keys, catalog, *own)

    def follows(self, version: int) -> bool:
        """Take over the version that a write made, if it is the next one; then take its step."""
        if version != self.state.version + 1:
            return False
        self.state.version = version
        return True

    def catch_up(self, version: int, news: News) -> None:
        """Take the steps of other servers, up to a version."""
        slots = 1 + max((slot for _, _, slot, _ in news.steps), default=0)
        if self.changed is not None:
            self.changed.update(place for place, *_ in news.steps)
        counts = widened(self.counts, slots).astype(COUNT)
        for place, outcome, slot, amount in news.steps:
            counts[place, outcome, slot] += amount
        self.counts = compact(counts)
        for place, time in news.first_shown:
            if np.isnan(self.state.first_shown[place]):
                self.state.first_shown[place] = time
        self.state.version = version

    @property
    def life(self) -> int:
        """Its life: a query that was deleted and added again has another one."""
        return self.state.version // LIFE

    @property
    def active(self) -> Bools:
        """Which items may be listed: withdrawn neither from the query nor from the catalog."""
        if self._active is None:
            self._active = self.state.active & ~self.withdrawn
        return self._active

    @property
    def candidates(self) -> Ints:
        """Rows of the current candidates, ascending."""
        if self._candidates is None:
            self._candidates = np.flatnonzero(self.active)
        return self._candidates

    def prior(self, model: Model) -> ItemPrior:
        """Return the prior of the candidates, computed once per model and set of candidates."""
        if self._prior is None or self._prior_of != (model.version, model.fit):
            self._prior = model.prior(self._features(model), self.keys)
            self._prior_of = model.version, model.fit
        return self._prior

    def inputs(self, model: Model) -> Features:
        """Return the features of the candidates as the model's learner gets them."""
        return model.inputs(self._features(model), self.keys)

    def _features(self, model: Model) -> Features:
        """Return the features of the candidates, with missing values filled in."""
        return filled(self.state.features[self.candidates], by_mean=model.fill_by_mean)

    def stats(self, rows: Ints | None = None) -> BehaviorStats:
        """Return what users did with all items, or with those in some rows."""
        counts = self.counts if rows is None else self.counts[rows]
        return BehaviorStats.trusted(counts.astype(COUNT), self.behaviors)

    @property
    def lists(self) -> int:
        """How many lists users have seen: as many as had an item at the top."""
        return int(self.counts[:, SHOWN, 0].sum())

    def age(self, now: float) -> float:
        """Return for how many seconds it has had items."""
        if self._first_entered is None:
            self._first_entered = float(self.state.entered.min(initial=math.inf))
        return max(now - min(self._first_entered, now), 0.0)

    def rows_of(self, ids: Sequence[str]) -> list[int | None]:
        """Return the rows of some items, None for unknown ones."""
        rows = self._row_by_name()
        return [rows.get(item) for item in ids]

    def lists_row(self, row: int | None) -> bool:
        """Return whether an item may be listed: it is in the query and not withdrawn."""
        return row is not None and bool(self.active[row])

    def _row_by_name(self) -> dict[str, int]:
        """Return the row of each item; kept if it takes milliseconds to make."""
        rows = self._rows
        if rows is None:
            rows = {item: row for row, item in enumerate(self.ids)}
            if len(rows) >= LARGE:
                self._rows = rows
        return rows

    def put(self, items: Iterable[NewItem], time: float) -> int:
        """Add candidates or change them, as the store did; return how many are new."""
        rows, given = self._row_by_name(), {item.id: item.features for item in items}
        new = [item for item in given if item not in rows]
        for item, features in given.items():
            if item in rows:
                self.state.features[rows[item]] = features
                self.state.active[rows[item]] = True
        if new:
            self._append(new, np.array([given[item] for item in new], np.float32), time)
        self._changed()
        return len(new)

    def share(self, changes: Changes) -> None:
        """Take over changes of the catalog."""
        if changes.names:
            rows = np.array(self.rows_of(changes.names))
            self.state.features[rows[:, None], changes.places] = changes.features
            self.mark(rows, changes.withdrawn)

    def mark(self, rows: Ints, withdrawn: Bools) -> None:
        """Record which items the catalog has withdrawn."""
        self.withdrawn[rows] = withdrawn
        self._changed()

    def withdraw(self, row: int) -> None:
        """Record that an item was withdrawn."""
        self.state.active[row] = False
        self._changed()

    def reach(self, epoch: int) -> None:
        """Let counts fade up to an epoch."""
        if epoch > self.state.epoch:
            self.changed = None
            state, counts = self.state, self.counts.astype(COUNT)
            self.counts = compact(counting.faded(counts, state.query, state.epoch, epoch))
            state.epoch = epoch

    def add(self, change: Change) -> None:
        """Add what an entry of the log adds to counts."""
        entry, steps = change.entry, change.steps
        self.reach(entry.epoch)
        if not steps:
            return
        if self.changed is not None:
            self.changed.update(change.rows)
        counts = self.counts = widened(self.counts, 1 + steps[-1][2])
        largest = LARGEST_COUNTS[counts.itemsize]
        for row, outcome, slot, amount in steps:
            if (
                entry.epoch
                and outcome
                and not counting.possible(counts[row, :, slot].tolist(), outcome, amount)
            ):
                break
            count = counts.item(row, outcome, slot) + amount
            if count > largest:
                counts = self.counts = counts.astype(COUNT_TYPES[2 * counts.itemsize])
                largest = LARGEST_COUNTS[counts.itemsize]
            counts[row, outcome, slot] = count  # ten of them: a loop is faster than an array
        first_shown = self.state.first_shown
        for row in change.shown:
            if math.isnan(first_shown.item(row)):
                first_shown[row] = change.time

    def hint(self, rows: Sequence[int]) -> Hint:
        """Return what memory says about the items in these rows, for an entry that names them."""
        return Hint(rows, np.isnan(self.state.first_shown[rows]).tolist(), self.life)

    def _append(self, ids: Sequence[str], features: npt.NDArray[np.float32], time: float) -> None:
        state, count = self.state, len(ids)
        if self._rows is not None:
            self._rows.update(zip(ids, range(len(self), len(self) + count), strict=True))
        self.ids = state.ids = self.ids.extended(ids)
        state.features = np.concatenate([state.features, features])
        none = np.zeros((count, self.behaviors.outcomes, 1), COUNT)
        self.counts = compact(stacked([self.counts, none], self.behaviors))
        new: dict[str, Any] = {
            "entered": time,
            "first_shown": np.nan,
            "active": True,
            "tie_keys": _tie_keys(state.query, ids, self.seed),
            "withdrawn": False,
            "found_after": np.nan,
            "explored_first": False,
        }
        for owner, arrays in ((state, _STORED), (self, _OWN)):
            for name, kind in arrays.items():
                added: npt.NDArray[Any] = np.full(count, new[name], kind)
                setattr(owner, name, np.concatenate([getattr(owner, name), added]))

    def _changed(self) -> None:
        """Discard what was computed for another set of candidates."""
        self._active = self._candidates = self._prior = self._first_entered = None
        self.changed = None


def _tie_keys(query: str, ids: Sequence[str], seed: int) -> npt.NDArray[np.uint32]:
    """Return a key for each item that depends only on the seed and both names."""
    names = (f"{len(query)}:{query}{item}" for item in ids)
    keys = (xxhash.xxh3_64_intdigest(encode(name), seed) >> 32 for name in names)
    return np.fromiter(keys, np.uint32, len(ids))


def stacked(parts: Sequence[Counts], behaviors: Behaviors) -> SmallInts:
    """Return counts of items in sequence, with an outcome for each behavior."""
    slots = max(part.shape[2] for part in parts)
    counts = np.zeros((sum(map(len, parts)), behaviors.outcomes, slots), COUNT)
    begin = 0
    for part in parts:
        counts[begin : begin + len(part), : part.shape[1], : part.shape[2]] = part
        begin += len(part)
    return counts


def compact(counts: SmallInts) -> Counts:
    """Return counts in as few bytes as the largest needs."""
    most = counts.max(initial=0)
    size = next(size for size, limit in LARGEST_COUNTS.items() if most <= limit)
    return counts.astype(COUNT_TYPES[size])


def widened(counts: Counts, slots: int) -> Counts:
    """Return counts padded to at least this many slots."""
    if slots <= counts.shape[2]:
        return counts
    wider = np.zeros((*counts.shape[:2], slots), counts.dtype)
    wider[:, :, : counts.shape[2]] = counts
    return wider
