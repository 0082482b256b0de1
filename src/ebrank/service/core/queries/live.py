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
import struct
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from ebrank.evidence import CLICKS, Behaviors, BehaviorStats
from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.forgetting import forgotten
from ebrank.evidence.stats import COUNT
from ebrank.priors.base import ItemPrior
from ebrank.service.core.feature_schema import filled
from ebrank.service.core.packed import (
    COUNT_TYPES,
    LARGEST_COUNTS,
    PackedStrings,
    compact,
    encode,
    stacked,
    widened,
)
from ebrank.service.learning.models import Model
from ebrank.service.store import counting
from ebrank.service.store.records import LIFE, Hint, NewItem, News, Operation, QueryState
from ebrank.typing import Features, Floats, Ints, SmallInts

NO_COUNTS: SmallInts = np.zeros((0, 2, 1), COUNT)
QUERY_BYTES, ITEM_BYTES = 3600, 55
"""What an unpacked query takes, and each of its items, besides its name, features and counts."""
LARGE, INDEX_BYTES = 1000, 150
"""From this many items on a query keeps the rows of all by name, which takes this much for each."""
MOST_SHIFTS = 8
"""Contexts whose effects an unpacked query remembers."""
USUAL_SLOTS, USUAL_BYTES = 10, 2
"""Counts grow to this many slots with a query's first list of ten, and to this many bytes each."""

_HEAD = struct.Struct("<QQQdIIIBBB")


class LiveQuery:
    """A query's items, their counters, and the prior of its candidates.

    A row is an item's place in the arrays; it never changes.

    Attributes:
        ids: the items' names.
        state: what the store would load, except the counts.
        counts: what users did, shape (items, outcomes, slots), in as few bytes as needed.
        behaviors: those with an outcome.
        tie_keys: order equal scores, one number per item.
        keys: of the features in the columns of `state.features`: those of query and item, joined
            with shared ones.
        catalog: the version of the catalog that they were joined with.
        since: when it was read; what is not stored is known from then on.
        earned: how long after entering an item was first listed for its relevance rather than by
            exploration, in seconds; NaN if that has not been observed.
        explored_first: whether exploration showed it first.
    """

    __slots__ = (
        "_arrivals",
        "_candidates",
        "_prior",
        "_prior_version",
        "_rows",
        "_seed",
        "_shifts",
        "behaviors",
        "catalog",
        "counts",
        "earned",
        "explored_first",
        "ids",
        "keys",
        "since",
        "state",
        "tie_keys",
    )

    def __init__(
        self,
        state: QueryState,
        *,
        seed: int,
        since: float,
        behaviors: Behaviors = CLICKS,
        keys: Sequence[str] = (),
        catalog: int = 0,
    ) -> None:
        self.keys = keys
        self.catalog = catalog
        self.ids = PackedStrings(state.ids)
        self.state = replace(state, ids=self.ids, counts=NO_COUNTS)
        self.since = since
        self._seed = seed
        self.tie_keys = _tie_keys(state.query, state.ids, seed)
        self.earned = np.full(len(state.ids), np.nan, np.float32)
        self.explored_first = np.zeros(len(state.ids), np.bool_)
        self._candidates: Ints | None = None
        self._arrivals: int | None = None
        self._prior: ItemPrior | None = None
        self._prior_version = -1
        self._shifts: dict[tuple[int, ...], Floats | None] = {}
        self._rows: dict[str, int] | None = None
        self.behaviors = behaviors
        checked = BehaviorStats(stacked([state.counts], behaviors), behaviors)
        self.counts = compact(checked.counts)

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
        arrays = (
            state.entered,
            state.first_shown,
            state.features,
            self.tie_keys,
            self.earned,
            state.active,
            self.explored_first,
            counts,
        )
        shape = len(self), state.features.shape[1], len(text), *counts.shape[1:], counts.itemsize
        head = _HEAD.pack(state.version, state.epoch, self.catalog, self.since, *shape)
        return b"".join([head, text, ends.tobytes(), *(values.tobytes() for values in arrays)])

    @classmethod
    def unpacked(
        cls,
        query: str,
        data: bytes,
        *,
        seed: int,
        behaviors: Behaviors,
        keys: Sequence[str] = (),
    ) -> LiveQuery:
        """Return a query with this name as it was when it was packed."""
        version, epoch, catalog, since, items, features, length, *rest = _HEAD.unpack_from(data)
        outcomes, slots, width = rest
        at = _HEAD.size + length

        def taken(kind: npt.DTypeLike, *shape: int) -> npt.NDArray[Any]:
            nonlocal at
            values = np.frombuffer(data, kind, math.prod(shape), at)
            at += values.nbytes
            return values.reshape(shape).copy()

        live = cls.__new__(cls)
        ends = array("I", taken(np.uint32, items).tobytes())
        live.ids = PackedStrings.of_parts(data[_HEAD.size : _HEAD.size + length], ends)
        entered, first_shown = taken(np.float64, items), taken(np.float64, items)
        numbers = taken(np.float32, items, features)
        live.tie_keys, live.earned = taken(np.uint32, items), taken(np.float32, items)
        active, live.explored_first = taken(np.bool_, items), taken(np.bool_, items)
        live.counts, live.behaviors = taken(COUNT_TYPES[width], items, outcomes, slots), behaviors
        live.state = QueryState(
            query, live.ids, numbers, NO_COUNTS, entered, first_shown, active, version, epoch
        )
        live.since, live._seed = since, seed
        live.keys, live.catalog = keys, catalog
        live._candidates = live._prior = live._arrivals = live._rows = None
        live._prior_version, live._shifts = -1, {}
        return live

    def follows(self, version: int) -> bool:
        """Take over the version that a write made, if it is the next one; then take its step."""
        if version != self.state.version + 1:
            return False
        self.state.version = version
        return True

    def catch_up(self, version: int, news: News) -> None:
        """Take the steps of other servers, up to a version."""
        slots = 1 + max((slot for _, _, slot, _ in news.steps), default=0)
        counts = widened(self.counts, slots).astype(COUNT)
        for place, outcome, slot, amount in news.steps:
            counts[place, outcome, slot] += amount
        self.counts = compact(counts)
        for place, time in news.first_shown:
            self.state.first_shown[place] = time
        self.state.version = version

    @property
    def life(self) -> int:
        """Which of the successive queries with its name it is."""
        return self.state.version // LIFE

    @property
    def candidates(self) -> Ints:
        """Rows of the current candidates, ascending."""
        if self._candidates is None:
            self._candidates = np.flatnonzero(self.state.active)
        return self._candidates

    def prior(self, model: Model) -> ItemPrior:
        """Return the prior of the candidates, computed once per model and set of candidates."""
        if self._prior is None or self._prior_version != model.version:
            self._prior = model.prior(self._features(model), self.keys)
            self._prior_version = model.version
            self._shifts = {}
        return self._prior

    def shifts(self, model: Model, contexts: tuple[int, ...]) -> Floats | None:
        """Return how far contexts move the logits of candidates; None if they are unknown.

        It is kept as long as the prior.
        """
        if model.ranker.contexts_ is None:
            return None
        self.prior(model)
        if contexts not in self._shifts:
            if len(self._shifts) >= MOST_SHIFTS:
                self._shifts.clear()
            self._shifts[contexts] = model.shifts(self._features(model), self.keys, contexts)
        return self._shifts[contexts]

    def _features(self, model: Model) -> Features:
        """Return the features of the candidates, with missing values filled in."""
        return filled(self.state.features[self.candidates], by_mean=model.fill_by_mean)

    def stats(self, rows: Ints) -> BehaviorStats:
        """Return what users did with the items in some rows."""
        return BehaviorStats.trusted(self.counts[rows].astype(COUNT), self.behaviors)

    @property
    def lists(self) -> int:
        """How many lists users have seen: as many as had an item at the top."""
        return int(self.counts[:, SHOWN, 0].sum())

    @property
    def arrivals(self) -> int:
        """How many items became candidates after the first list."""
        if self._arrivals is None:
            first = np.nanmin(self.state.first_shown) if self.lists else np.inf
            self._arrivals = int((self.state.entered > first).sum())
        return self._arrivals

    def age(self, now: float) -> float:
        """Return for how many seconds it has had items."""
        return max(now - float(self.state.entered.min(initial=now)), 0.0)

    def rows_of(self, ids: Sequence[str]) -> list[int | None]:
        """Return the rows of some items, None for unknown ones."""
        rows = self._row_by_name()
        return [rows.get(item) for item in ids]

    def lists_row(self, row: int | None) -> bool:
        """Return whether an item may be listed: it is known and not withdrawn."""
        return row is not None and bool(self.state.active[row])

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
        state = self.state
        rows, given = self._row_by_name(), {item.id: item.features for item in items}
        known = [item for item in given if item in rows]
        new = [item for item in given if item not in rows]
        for item in known:
            state.features[rows[item]] = given[item]
            state.active[rows[item]] = True
        if new:
            self._append(new, np.array([given[item] for item in new], np.float32), time)
        self._changed()
        return len(new)

    def share(self, names: Sequence[str], columns: Sequence[int], features: Features) -> None:
        """Take over changes of shared features."""
        if names:
            rows = np.array(self.rows_of(names))
            self.state.features[rows[:, None], columns] = features
            self._changed()

    def withdraw(self, row: int) -> None:
        """Record that an item was withdrawn."""
        self.state.active[row] = False
        self._changed()

    def reach(self, epoch: int) -> None:
        """Let counts fade up to an epoch."""
        if epoch > self.state.epoch:
            keys = counting.keys_of(self.state.query, range(len(self)))
            counts = self.counts.astype(COUNT)
            self.counts = compact(forgotten(counts, keys, self.state.epoch, epoch))
            self.state.epoch = epoch

    def add(self, entry: Operation, rows: Sequence[int]) -> None:
        """Add what an entry of the log adds to the counts of its items, in these rows."""
        self.reach(entry.epoch)
        steps = counting.steps(entry, rows)
        if not steps:
            return
        counts = self.counts = widened(self.counts, 1 + steps[-1][2])
        for row, outcome, slot, amount in steps:
            if (
                entry.epoch
                and outcome
                and not counting.possible(counts[row, :, slot].tolist(), outcome, amount)
            ):
                break
            count = counts.item(row, outcome, slot) + amount
            if count > LARGEST_COUNTS[counts.itemsize]:
                counts = self.counts = counts.astype(COUNT_TYPES[2 * counts.itemsize])
            counts[row, outcome, slot] = count  # ten of them: a loop is faster than an array
        first_shown = self.state.first_shown
        for row in counting.shown(entry, rows):
            if math.isnan(first_shown[row]):
                first_shown[row] = counting.time_of(entry)

    def hint(self, rows: Sequence[int]) -> Hint:
        """Return what is known about the items in these rows, for an entry that names them."""
        return Hint(rows, np.isnan(self.state.first_shown[rows]).tolist(), self.life)

    def _append(self, ids: Sequence[str], features: npt.NDArray[np.float32], time: float) -> None:
        state, count = self.state, len(ids)
        if self._rows is not None:
            self._rows.update(zip(ids, range(len(self), len(self) + count), strict=True))
        self.ids = state.ids = self.ids.extended(ids)
        state.features = np.concatenate([state.features, features])
        none = np.zeros((count, self.behaviors.outcomes, 1), COUNT)
        self.counts = compact(stacked([self.counts, none], self.behaviors))
        state.entered = np.concatenate([state.entered, np.full(count, time)])
        state.first_shown = np.concatenate([state.first_shown, np.full(count, np.nan)])
        state.active = np.concatenate([state.active, np.ones(count, np.bool_)])
        self.earned = np.concatenate([self.earned, np.full(count, np.nan, np.float32)])
        self.explored_first = np.concatenate([self.explored_first, np.zeros(count, np.bool_)])
        self.tie_keys = np.concatenate([self.tie_keys, _tie_keys(state.query, ids, self._seed)])

    def _changed(self) -> None:
        """Discard what was computed for another set of candidates."""
        self._candidates = self._prior = self._arrivals = None


def _tie_keys(query: str, ids: Sequence[str], seed: int) -> npt.NDArray[np.uint32]:
    """Return a key for each item that depends only on the seed and both names."""
    names = (f"{len(query)}:{query}{item}" for item in ids)
    keys = (xxhash.xxh3_64_intdigest(encode(name), seed) >> 32 for name in names)
    return np.fromiter(keys, np.uint32, len(ids))
