"""The queries in memory: read from the store when first needed, packed and dropped when unused.

A `LiveQuery` is a `QueryState` that follows the log: each write takes the same step here. It also
keeps the prior of its candidates, which is costly to compute and rarely changes. Recently used
queries are ready; others are packed: one with a single item takes some 200 bytes instead of 4 KB.

Other servers may write to the same store. Each write returns the query's version. If it is one more
than the version in memory, no other server wrote, and memory takes the same step. Otherwise memory
is out of date. Usually the write also returns what others have counted since; if not, the query is
dropped, and read again before its next list.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import struct
from array import array
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
import xxhash

from ebrank.errors import ParameterError
from ebrank.evidence import CLICKS, Behaviors, BehaviorStats
from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.forgetting import HalfLife, forgotten
from ebrank.evidence.stats import COUNT
from ebrank.policy import LISTS_AHEAD, USUAL_LISTS
from ebrank.priors.base import ItemPrior
from ebrank.service.core.catalog import Catalog
from ebrank.service.core.feature_schema import filled
from ebrank.service.learning.models import Model
from ebrank.service.store import counting
from ebrank.service.store.base import Store, StoreError, UnknownQuery
from ebrank.service.store.records import LIFE, Hint, NewItem, News, Operation, QueryState
from ebrank.typing import Features, Floats, Ints, SmallInts

KNOWN = 10.0
"""After this many lists a query's own rate counts as much as that of all."""
PACE_SECONDS, MOST_PACED = 10.0, 256
"""How often, and from how many queries, the rate of all is computed."""
NO_COUNTS: SmallInts = np.zeros((0, 2, 1), COUNT)
ROOM = 16 * 10**6
"""Default room of a cache, in bytes."""
GENERATIONS = 8
"""Packed values are stored with those used at about the same time: an eighth of all."""
ENTRY_BYTES = 136
"""What a packed value takes besides its own bytes and its key's: objects, a place in a table."""
MOST_TOGETHER = 20_000
"""... and no more than this: copying a table that grows takes a millisecond then."""
DROPPED_AT_ONCE = 1000
"""The most to drop when another is kept: more would delay the request that keeps it."""
PACKED_AT_ONCE = 100
"""The same for packing."""
MOST_UNPACKED = 2000
"""Unpacked queries: they take more memory, and the garbage collector visits a dozen objects of
each. Packing one and unpacking another takes a third of the time of a list."""
QUERY_BYTES, ITEM_BYTES = 3600, 55
"""What an unpacked query takes, and each of its items, besides its name, features and counts."""
LARGE, INDEX_BYTES = 1000, 150
"""From this many items on a query keeps the rows of all by name, which takes this much for each."""
MOST_SHIFTS = 8
"""Contexts whose effects an unpacked query remembers."""
USUAL_SLOTS, USUAL_BYTES = 10, 2
"""Counts grow to this many slots with a query's first list of ten, and to this many bytes each."""

_HEAD = struct.Struct("<QQQdIIIBBB")
_COUNTS: Mapping[int, Any] = {1: np.uint8, 2: np.uint16, 4: COUNT}
"""Types of counts, by their bytes."""
_MOST = {size: int(np.iinfo(kind).max) for size, kind in _COUNTS.items()}
_Key = TypeVar("_Key", bound=Hashable)

Counts: TypeAlias = npt.NDArray[np.integer[Any]]
"""Whole numbers of any size."""


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
        self.counts = _compact(checked.counts)

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
        live.counts, live.behaviors = taken(_COUNTS[width], items, outcomes, slots), behaviors
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
        counts = _widened(self.counts, slots).astype(COUNT)
        for place, outcome, slot, amount in news.steps:
            counts[place, outcome, slot] += amount
        self.counts = _compact(counts)
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
            self.counts = _compact(forgotten(counts, keys, self.state.epoch, epoch))
            self.state.epoch = epoch

    def add(self, entry: Operation, rows: Sequence[int]) -> None:
        """Add what an entry of the log adds to the counts of its items, in these rows."""
        self.reach(entry.epoch)
        steps = counting.steps(entry, rows)
        if not steps:
            return
        counts = self.counts = _widened(self.counts, 1 + steps[-1][2])
        for row, outcome, slot, amount in steps:
            if (
                entry.epoch
                and outcome
                and not counting.possible(counts[row, :, slot].tolist(), outcome, amount)
            ):
                break
            count = counts.item(row, outcome, slot) + amount
            if count > _MOST[counts.itemsize]:
                counts = self.counts = counts.astype(_COUNTS[2 * counts.itemsize])
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
        self.counts = _compact(stacked([self.counts, none], self.behaviors))
        state.entered = np.concatenate([state.entered, np.full(count, time)])
        state.first_shown = np.concatenate([state.first_shown, np.full(count, np.nan)])
        state.active = np.concatenate([state.active, np.ones(count, np.bool_)])
        self.earned = np.concatenate([self.earned, np.full(count, np.nan, np.float32)])
        self.explored_first = np.concatenate([self.explored_first, np.zeros(count, np.bool_)])
        self.tie_keys = np.concatenate([self.tie_keys, _tie_keys(state.query, ids, self._seed)])

    def _changed(self) -> None:
        """Discard what was computed for another set of candidates."""
        self._candidates = self._prior = self._arrivals = None


@dataclass(slots=True)
class Lookups:
    """How often a query was found in memory, read from the store, or out of date.

    Attributes:
        memory: it was in memory.
        store: it was read from the store.
        stale: a write revealed that another server had written since; a list made before that was
            made without these writes.
    """

    memory: int = 0
    store: int = 0
    stale: int = 0


class Queries:
    """The queries in memory: recently used ones as they are, others packed, as many as fit.

    Attributes:
        room: bytes they may take together; one is always kept.
        lookups: where queries were found; metrics watch it.
    """

    def __init__(
        self,
        store: Store,
        *,
        seed: int,
        room: int = ROOM,
        behaviors: Behaviors = CLICKS,
        catalog: Catalog | None = None,
        half_life: HalfLife | None = None,
    ) -> None:
        self._store = store
        self._half_life = half_life
        self._catalog = catalog or Catalog(store)
        self._schema = self._catalog.schema  # by which those in memory were joined
        self._behaviors = behaviors
        self._seed = seed
        self.room = room
        self.lookups = Lookups()
        self._live: OrderedDict[str, LiveQuery] = OrderedDict()  # the longest unused first
        self._sizes: dict[str, int] = {}
        self._unpacked = 0  # bytes
        self._keys: Sequence[str] = ()
        self._packed: PackedCache[str] = PackedCache(room)
        self._loading: dict[str, asyncio.Task[LiveQuery | None]] = {}
        self._usual = 0.0, 0.0, 0.0
        self._usual_until = -math.inf

    @property
    def size(self) -> int:
        """Bytes they take together."""
        return self._unpacked + self._packed.size

    async def get(self, query: str, now: float) -> LiveQuery | None:
        """Return a query in memory, read if needed; None if the store does not have it."""
        live = await self._found(query, now)
        if live is not None and self._half_life is not None:
            live.reach(self._half_life.epoch(now))
        return live

    async def _found(self, query: str, now: float) -> LiveQuery | None:
        catalog = self._catalog
        if catalog.found != catalog.version:
            await catalog.follow()
        if catalog.schema is not self._schema:
            self.clear()
        live = self.in_memory(query)
        if live is not None:
            self.lookups.memory += 1
            if live.catalog != catalog.version:
                await self._share(live)
            if query in self._live:  # it may have been packed meanwhile
                self._live.move_to_end(query)
            self.trim()
            return live
        loading = self._loading.get(query)
        if loading is None:
            self.lookups.store += 1
            # A separate task: a caller that goes away must not cancel it for the others.
            loading = asyncio.create_task(self._load(query, now))
            self._loading[query] = loading
        return await asyncio.shield(loading)

    async def _load(self, query: str, now: float) -> LiveQuery | None:
        try:
            epoch = None
            while epoch != self._store.epoch:  # or it may hold what was lost meanwhile
                epoch = self._store.epoch
                live = await self._read(query, now)
        finally:
            del self._loading[query]
        if live is not None:
            self.admit(live)
        return live

    async def _read(self, query: str, now: float) -> LiveQuery | None:
        """Return a query from the store, joined with its catalog."""
        state = await self._store.items.load(query)
        if state is None:
            return None
        catalog = self._catalog
        while True:
            schema, version = catalog.schema, catalog.version
            keys, features = await catalog.joined(state.ids, state.features)
            if catalog.schema is schema:  # it may have changed meanwhile
                return self._made(replace(state, features=features), now, keys, version)

    async def _share(self, live: LiveQuery) -> None:
        """Take over what has changed in the catalog since a query was joined with it."""
        version = self._catalog.version
        names, columns, features = await self._catalog.changes(live.ids, live.catalog)
        if live.keys == self._catalog.schema.keys:
            live.share(names, columns, features)
            live.catalog = version

    def clear(self) -> None:
        """Drop all queries; each is read again when needed."""
        for name in list(self._live):
            self._forget(name)
        self._packed.clear()
        self._schema = self._catalog.schema

    def _made(self, state: QueryState, now: float, keys: Sequence[str], catalog: int) -> LiveQuery:
        if keys == self._keys:
            keys = self._keys  # one for all queries
        self._keys = keys
        try:
            return LiveQuery(
                state,
                seed=self._seed,
                since=now,
                behaviors=self._behaviors,
                keys=keys,
                catalog=catalog,
            )
        except ParameterError as problem:
            raise StoreError(
                f"query {state.query!r} is damaged: {problem}. Run `ebrank replay` for details"
            ) from problem

    def in_memory(self, query: str) -> LiveQuery | None:
        """Return a query that is in memory, unpacked; others stay as they are."""
        live = self._live.get(query)
        if live is None:
            data = self._packed.pop(query)
            if data is not None:
                live = LiveQuery.unpacked(
                    query,
                    data,
                    seed=self._seed,
                    behaviors=self._behaviors,
                    keys=self._schema.keys,
                )
                self._keep(live)
        return live

    @contextmanager
    def following(self, queries: Sequence[str]) -> Iterator[None]:
        """Drop queries that another server has deleted, as a write to them revealed."""
        try:
            yield
        except UnknownQuery:
            for query in queries:
                self.forget(query)
            raise

    def version(self, query: str) -> int | None:
        """Return the version of a query that is in memory, None if it is not there."""
        live = self.in_memory(query)
        return None if live is None else live.state.version

    def wrote(self, query: str, version: int, news: News | None = None) -> LiveQuery | None:
        """Return the query that must take the step of a write, which made this version.

        It must take it before the next call of `get` or `admit`, which may pack it. None if it is
        not in memory, or was dropped because another server wrote in between and what it wrote is
        unknown: it is read, including the step, when needed.
        """
        live = self.in_memory(query)
        if live is None or live.follows(version):
            return live
        self.lookups.stale += 1
        if news is None or news.since != live.state.version:
            self._forget(query)
            return None
        live.catch_up(version - 1, news)
        live.follows(version)
        return live

    def forget(self, query: str) -> None:
        """Drop a query that is out of date; it is read again when needed."""
        if self.in_memory(query) is not None:
            self._forget(query)

    async def dropped(self, query: str) -> None:
        """Return when a query is neither in memory nor being read."""
        loading = self._loading.get(query)
        if loading is not None:
            await asyncio.wait([loading])
        self.forget(query)

    def empty(self, query: str, keys: Sequence[str], now: float, version: int = 0) -> LiveQuery:
        """Return a query without items, not yet kept, with the version of its first."""
        state = QueryState(
            query,
            [],
            np.zeros((0, len(keys)), np.float32),
            NO_COUNTS,
            np.zeros(0),
            np.zeros(0),
            np.zeros(0, np.bool_),
            version,
        )
        return self._made(state, now, keys, self._catalog.version)

    def admit(self, live: LiveQuery) -> None:
        """Keep a query that has grown, or is new; pack and drop others if memory is short."""
        self._keep(live)
        self.trim()

    def _keep(self, live: LiveQuery) -> None:
        name, size = live.state.query, live.size
        if name not in self._live:
            self._packed.pop(name)
        self._live[name] = live
        self._live.move_to_end(name)
        self._unpacked += size - self._sizes.get(name, 0)
        self._sizes[name] = size

    def trim(self) -> None:
        """Pack queries and drop packed ones, least recently used first, or a part of them."""
        for _ in range(PACKED_AT_ONCE):
            fits = self._unpacked <= self.room // 2 and len(self._live) <= MOST_UNPACKED
            if fits or len(self._live) == 1:
                break
            name, live = next(iter(self._live.items()))
            self._forget(name)
            self._packed.put(name, live.packed())
        self._packed.room = max(self.room - self._unpacked, 0)
        self._packed.trim()

    def _forget(self, query: str) -> None:
        del self._live[query]
        self._unpacked -= self._sizes.pop(query)

    def expected_lists(self, live: LiveQuery, now: float, period: float) -> float:
        """Return how many lists of a query to plan for: those in which its items matter.

        We assume that its rate stays the same, and plan no further ahead than its past reaches
        back. The rate of a query with little history is shrunk towards that of all: a Gamma prior
        worth `KNOWN` lists. If new items keep coming, what we learn about one is useful until
        others replace it, after as many lists as bring in a whole new set of candidates. Each of
        the two ends has its own rate; the rates add up.
        """
        if now >= self._usual_until:
            self._usual, self._usual_until = self._pace(now), now + PACE_SECONDS
        lists, age, past = self._usual
        own, expected = live.lists, USUAL_LISTS
        since = live.age(now)
        remembered = self._remembered(since)
        if lists > 0.0 and age > 0.0:
            rate = (KNOWN + own) / (KNOWN * age / lists + remembered)
            expected = max(rate * min(period, max(since, past)), USUAL_LISTS)
        arrivals = live.arrivals * (remembered / since if since else 1.0)
        renewal = arrivals / max(own * len(live.candidates), 1)
        return 1.0 / (1.0 / expected + LISTS_AHEAD * renewal)

    def _pace(self, now: float) -> tuple[float, float, float]:
        """Return the sums of the lists and ages of queries in memory, and the mean age."""
        some = self.recent(MOST_PACED)
        ages = [live.age(now) for live in some]
        total = sum(map(self._remembered, ages))
        return float(sum(live.lists for live in some)), total, sum(ages) / max(len(some), 1)

    def _remembered(self, seconds: float) -> float:
        """Return how many of these seconds a query's counters still cover."""
        return seconds if self._half_life is None else self._half_life.remembered(seconds)

    def recent(self, most: int) -> list[LiveQuery]:
        """Return the most recently used queries, the latest first."""
        names = reversed(self._live)
        return [self._live[name] for name, _ in zip(names, range(most), strict=False)]


def stacked(parts: Sequence[Counts], behaviors: Behaviors) -> SmallInts:
    """Return counts of items in sequence, with an outcome for each behavior."""
    slots = max(part.shape[2] for part in parts)
    counts = np.zeros((sum(map(len, parts)), behaviors.outcomes, slots), COUNT)
    begin = 0
    for part in parts:
        counts[begin : begin + len(part), : part.shape[1], : part.shape[2]] = part
        begin += len(part)
    return counts


def _compact(counts: SmallInts) -> Counts:
    """Return counts in as few bytes as the largest needs."""
    most = counts.max(initial=0)
    size = next(size for size, limit in _MOST.items() if most <= limit)
    return counts.astype(_COUNTS[size])


def _widened(counts: Counts, slots: int) -> Counts:
    """Return counts with room for so many slots at least."""
    if slots <= counts.shape[2]:
        return counts
    wider = np.zeros((*counts.shape[:2], slots), counts.dtype)
    wider[:, :, : counts.shape[2]] = counts
    return wider


def _tie_keys(query: str, ids: Sequence[str], seed: int) -> npt.NDArray[np.uint32]:
    """Return a key for each item that depends only on the seed and both names."""
    names = (f"{len(query)}:{query}{item}" for item in ids)
    keys = (xxhash.xxh3_64_intdigest(encode(name), seed) >> 32 for name in names)
    return np.fromiter(keys, np.uint32, len(ids))


def encode(text: str) -> bytes:
    """Return any text as bytes, even half a character that no file would accept."""
    return text.encode("utf-8", "surrogatepass")


def decode(text: bytes) -> str:
    """Return the text that was encoded."""
    return text.decode("utf-8", "surrogatepass")


class PackedStrings(Sequence[str]):
    """An immutable list of short texts, stored as one text and the end of each.

    A Python string takes 50 bytes besides its text, which is too much for each item's name.

    >>> names = PackedStrings(["green", "tè nero"])
    >>> names[1], len(names), list(names.extended(["white"]))
    ('tè nero', 2, ['green', 'tè nero', 'white'])
    """

    __slots__ = ("_ends", "_text")

    def __init__(self, names: Sequence[str] = ()) -> None:
        encoded = [encode(name) for name in names]
        self._text = b"".join(encoded)
        self._ends = array("I", accumulate(map(len, encoded)))  # indexed faster than NumPy's

    @classmethod
    def of_parts(cls, text: bytes, ends: array[int]) -> PackedStrings:
        """Return the list with these `parts`."""
        names = cls()
        names._text, names._ends = text, ends
        return names

    @property
    def parts(self) -> tuple[bytes, array[int]]:
        """All texts as UTF-8, and the end of each."""
        return self._text, self._ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        end = self._ends[place]
        begin = self._ends[place - 1] if place % len(self) else 0
        return decode(self._text[begin:end])

    def __iter__(self) -> Iterator[str]:
        begin = 0
        for end in self._ends:
            yield decode(self._text[begin:end])
            begin = end

    def at(self, places: Sequence[int]) -> list[str]:
        """Return the texts at some places, counted from 0: faster than one by one."""
        text, ends = self._text, self._ends
        return [decode(text[ends[at - 1] if at else 0 : ends[at]]) for at in places]

    def extended(self, names: Sequence[str]) -> PackedStrings:
        """Return these names followed by others."""
        text, ends = PackedStrings(names).parts
        moved = array("I", (len(self._text) + end for end in ends))
        return PackedStrings.of_parts(self._text + text, self._ends + moved)


class PackedCache(Generic[_Key]):
    """Packed values by name, as many as there is room for; drops the least recently used first.

    As Python objects, a query with one item takes 4 KB, and the garbage collector, which stops
    everything meanwhile, visits each of its parts. It does not look into bytes.

    >>> cache = PackedCache(room=1000)
    >>> cache.put("tea", b"green")
    >>> cache.get("tea"), cache.get("coffee")
    (b'green', None)

    Each table holds values stored or used within a span of time. Values are dropped from the oldest
    table, in no particular order. No table is so large that growing it would take long.

    Attributes:
        room: bytes it may take.
        size: bytes it takes.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self.size = 0
        self._tables: deque[dict[_Key, bytes]] = deque([{}])
        self._newest = 0  # bytes in the newest table

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    def put(self, key: _Key, value: bytes) -> None:
        """Keep a value, replacing another with this name."""
        self.pop(key)
        cost = _cost(key, value)
        newest = self._tables[-1]
        full = self._newest + cost > self.room // GENERATIONS or len(newest) >= MOST_TOGETHER
        if newest and full:
            self._begin_table()
        self._tables[-1][key] = value
        self._newest += cost
        self.size += cost
        self.trim()

    def _begin_table(self) -> None:
        for at, (older, newer) in enumerate(itertools.pairwise(self._tables)):
            if len(older) + len(newer) <= MOST_TOGETHER // 8:  # much was taken out of them
                newer.update(older)
                del self._tables[at]
                break
        self._tables.append({})
        self._newest = 0

    def get(self, key: _Key) -> bytes | None:
        """Return a value, which counts as used now."""
        value = self._tables[-1].get(key)
        if value is None:
            value = self.pop(key)
            if value is not None:
                self.put(key, value)
        return value

    def pop(self, key: _Key) -> bytes | None:
        """Remove a value and return it."""
        for table in reversed(self._tables):
            value = table.pop(key, None)
            if value is not None:
                self._forget(table, _cost(key, value))
                return value
        return None

    def clear(self) -> None:
        """Drop everything."""
        self._tables = deque([{}])
        self.size = self._newest = 0

    def trim(self) -> None:
        """Drop what exceeds the room, or a part if that is a lot."""
        for _ in range(DROPPED_AT_ONCE):
            if self.size <= self.room or not self._drop():
                break

    def _drop(self) -> bool:
        """Drop one of the oldest values; return whether there was one."""
        while not self._tables[0]:
            if len(self._tables) == 1:
                return False
            self._tables.popleft()
        table = self._tables[0]
        key, value = table.popitem()
        self._forget(table, _cost(key, value))
        return True

    def _forget(self, table: dict[_Key, bytes], cost: int) -> None:
        self.size -= cost
        if table is self._tables[-1]:
            self._newest -= cost


def _cost(key: _Key, value: bytes) -> int:
    return ENTRY_BYTES + len(key) + len(value)  # type: ignore[arg-type]
