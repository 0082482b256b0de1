"""The queries in memory: read from the store when first needed, packed and dropped when unused.

Recently used queries are ready; others are packed: one with a single item takes some 200 bytes
instead of 4 KB. Also how many lists of a query to plan for, and how its name is spelled.

>>> from ebrank.service.store.memory import MemoryStore
>>> queries = Queries(MemoryStore(), seed=0)
>>> new = queries.empty("tea", (), now=0.0)
>>> Pace(queries, period=86400.0).lists_ahead(new, now=60.0)  # before there is any evidence
10.0
>>> normalized("  Grüner\u00a0 TEE ")
'grüner tee'
>>> normalized("ﬁsh"), normalized("Straße")
('fish', 'strasse')
"""

from __future__ import annotations

import asyncio
import math
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ebrank.errors import ParameterError
from ebrank.evidence import CLICKS, Behaviors
from ebrank.evidence.forgetting import HalfLife
from ebrank.model.bonus.horizon import lists_ahead
from ebrank.service.api import LONGEST_QUERY
from ebrank.service.core.catalog import Catalog
from ebrank.service.core.live import NO_COUNTS, LiveQuery
from ebrank.service.core.memory import ROOM, PackedCache
from ebrank.service.core.models import Model
from ebrank.service.core.problems import Problem
from ebrank.service.store.base import Store, StoreError, UnknownQuery
from ebrank.service.store.records import Commit, News, Operation, QueryState

PACKED_AT_ONCE = 100
"""The most to pack when another is kept: more would delay the request that keeps it."""
MOST_UNPACKED = 2000
"""Unpacked queries: they take more memory, and the garbage collector visits a dozen objects of
each. Packing one and unpacking another takes a third of the time of a list."""
TYPICAL = 10.0
"""After this many lists, a query's own rate and the overall rate have equal weight."""
PACE_SECONDS, MOST_PACED = 10.0, 256
"""How often, and from how many queries, the rate of all is computed."""


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
        half_life: after which their counts are halved; None if never.
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
        self.half_life = half_life
        self._catalog = catalog or Catalog(store)
        self._schema = self._catalog.schema  # by which those in memory were joined
        self._behaviors = behaviors
        self._seed = seed
        self.room = room
        self.lookups = Lookups()
        self._live: OrderedDict[str, LiveQuery] = OrderedDict()  # the longest unused first
        self._sizes: dict[str, int] = {}
        self._unpacked = 0  # bytes
        self._packed: PackedCache[str] = PackedCache(room)
        self._loading: dict[str, asyncio.Task[LiveQuery | None]] = {}

    @property
    def size(self) -> int:
        """Bytes they take together."""
        return self._unpacked + self._packed.size

    async def get(self, query: str, now: float) -> LiveQuery | None:
        """Return a query in memory, read if needed; None if the store does not have it."""
        live = await self._current(query, now)
        if live is not None:
            live.reach(self.epoch(now))
        return live

    def epoch(self, now: float) -> int:
        """Return the forgetting epoch of a time, 0 without a half-life."""
        return 0 if self.half_life is None else self.half_life.epoch(now)

    async def _current(self, query: str, now: float) -> LiveQuery | None:
        catalog = self._catalog
        if catalog.stored != catalog.version:
            await catalog.follow()
        if catalog.schema is not self._schema:
            self.clear()
        live = self.in_memory(query)
        if live is not None:
            self.lookups.memory += 1
            if live.catalog != catalog.version:
                await self._share(live)
                if not self.holds(live):  # it was packed or dropped meanwhile
                    return await self._current(query, now)
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

    async def look(self, query: str, now: float, version: int) -> LiveQuery | None:
        """Return a query, at least of a version of which it is known, without keeping it in memory.

        One in memory that is older is dropped.
        """
        live = self._live.get(query)
        if live is None and (data := self._packed.pop(query)) is not None:
            live = self._unpacked_of(query, data)
            if live.state.version >= version:
                self._packed.put(query, data)
        if live is None or live.state.version < version:
            stored = await self._read(query, now)
            live = self._live.get(query)  # somebody may have asked for it meanwhile
            if live is not None and (stored is None or live.state.version < stored.state.version):
                self._forget(query)
                live = None
            live = live or stored
        if live is not None:
            live.reach(self.epoch(now))
        return live

    async def _load(self, query: str, now: float) -> LiveQuery | None:
        try:
            incarnation = None
            while incarnation != self._store.incarnation:  # or it may hold what was lost meanwhile
                incarnation = self._store.incarnation
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
            keys, features, withdrawn = await catalog.joined(state.ids, state.features)
            if catalog.schema is schema:  # it may have changed meanwhile
                live = self._made(replace(state, features=features), now, keys, version)
                live.withdrawn = withdrawn
                return live

    async def _share(self, live: LiveQuery) -> None:
        """Take over what has changed in the catalog since a query was joined with it."""
        version = self._catalog.version
        changes = await self._catalog.changes(live.ids, live.catalog)
        if live.keys == self._catalog.schema.keys:
            live.share(changes)
            live.catalog = version

    def clear(self) -> None:
        """Drop all queries; each is read again when needed."""
        for name in list(self._live):
            self._forget(name)
        self._packed.clear()
        self._schema = self._catalog.schema

    def _made(self, state: QueryState, now: float, keys: Sequence[str], catalog: int) -> LiveQuery:
        try:
            return LiveQuery.read(
                state,
                seed=self._seed,
                since=now,
                behaviors=self._behaviors,
                keys=keys,
                catalog=catalog,
            )
        except ParameterError as problem:
            raise StoreError(
                f"a query is damaged: {problem}. Run `ebrank replay` for details"
            ) from problem

    def in_memory(self, query: str) -> LiveQuery | None:
        """Return a query that is in memory, unpacked; others stay as they are."""
        live = self._live.get(query)
        if live is None:
            data = self._packed.pop(query)
            if data is not None:
                live = self._unpacked_of(query, data)
                self._keep(live)
        return live

    def _unpacked_of(self, query: str, data: bytes) -> LiveQuery:
        return LiveQuery.unpacked(
            query, data, seed=self._seed, behaviors=self._behaviors, keys=self._schema.keys
        )

    def version(self, query: str) -> int | None:
        """Return the version of a query that is in memory, None if it is not there."""
        live = self.in_memory(query)
        return None if live is None else live.state.version

    async def write(
        self, entries: Sequence[Operation], basis: int
    ) -> tuple[Commit, dict[str, LiveQuery | None]]:
        """Log entries, and return the queries that must take their steps (see `wrote`).

        A query that another server has deleted is dropped.
        """
        try:
            commit = await self._store.log.write(
                entries, incarnation=basis, remembered=self.version
            )
        except UnknownQuery:
            for entry in entries:
                self.forget(entry.query)
            raise
        self._catalog.stored = commit.catalog
        return commit, {
            query: self.wrote(query, version, commit.news.get(query))
            for query, version in commit.versions.items()
        }

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
        features, times = np.zeros((0, len(keys)), np.float32), np.zeros(0)
        none = QueryState(
            query, [], features, NO_COUNTS, times, times, np.zeros(0, np.bool_), version
        )
        return self._made(none, now, keys, self._catalog.version)

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

    def holds(self, live: LiveQuery) -> bool:
        """Return whether this is the query in memory, unpacked: it may have been read again."""
        return self._live.get(live.state.query) is live

    def recent(self, most: int) -> list[LiveQuery]:
        """Return the most recently used queries, the latest first."""
        names = reversed(self._live)
        return [self._live[name] for name, _ in zip(names, range(most), strict=False)]


class Pace:
    """The rate at which lists of a query are requested, from its past and that of others."""

    def __init__(self, queries: Queries, period: float) -> None:
        """Take how many seconds of a query's past count at most."""
        self._queries = queries
        self._period = period
        self._usual = 0.0, 0.0, 0.0
        self._usual_until = -math.inf

    def planned(self, live: LiveQuery, model: Model, now: float) -> float | None:
        """Return how many lists of a query to plan for; None if the model's policy has no plans."""
        return self.lists_ahead(live, now) if model.ranker.policy.plans else None

    def lists_ahead(self, live: LiveQuery, now: float) -> float:
        """Return how many lists of a query to plan for, by the lab's rule.

        The lists it has had are those at its rate since it has been there, or in the period that
        counts if that is shorter. A new query may have been there as long as others. The rate of a
        query with little history is shrunk towards that of all: a Gamma prior worth `TYPICAL`
        lists.
        """
        if now >= self._usual_until:
            self._usual, self._usual_until = self._of_all(now), now + PACE_SECONDS
        lists, age, past = self._usual
        if lists == 0.0 or age == 0.0:
            return lists_ahead(live.lists)
        since = live.age(now)
        rate = (TYPICAL + live.lists) / (TYPICAL * age / lists + self._remembered(since))
        return lists_ahead(rate * min(self._period, max(since, past)))

    def _of_all(self, now: float) -> tuple[float, float, float]:
        """Return the sums of the lists and ages of queries in memory, and the mean age."""
        some = self._queries.recent(MOST_PACED)
        ages = [live.age(now) for live in some]
        total = sum(map(self._remembered, ages))
        return float(sum(live.lists for live in some)), total, sum(ages) / max(len(some), 1)

    def _remembered(self, seconds: float) -> float:
        """Return how many of these seconds a query's counters still cover."""
        half_life = self._queries.half_life
        return seconds if half_life is None else half_life.remembered(seconds)


def normalized(name: str) -> str:
    """Return a name in Unicode NFKC, without case, its words separated by single spaces.

    Names that look the same become the same, and a normalized name stays as it is.
    """
    folded = name.casefold()
    if not folded.isascii():
        # Folding may undo normalization, and normalization may undo folding.
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
    return " ".join(folded.split())


def naming(*, normalize: bool) -> Callable[[str], str]:
    """Return the function that turns a name in a request into the name of a query."""
    return _checked if normalize else str


def _checked(name: str) -> str:
    query = normalized(name)
    if not query:
        raise Problem("a query's name contains only spaces", "query")
    if len(query) > LONGEST_QUERY:
        raise Problem(f"a query's name has more than {LONGEST_QUERY} characters", "query")
    return query
