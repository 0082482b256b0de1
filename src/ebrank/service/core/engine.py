"""The service without the web: it ranks, counts what users do, and remembers both.

Everything is decided on one event loop. A list or an event is first written to the store, then
added to the counters in memory, then answered; requests that must be on disk wait for a flush that
they share.

>>> from ebrank.service.settings import Settings
>>> from ebrank.service.store.memory import MemoryStore
>>> async def session() -> None:
...     engine = await Engine.open(MemoryStore(), Settings())
...     await engine.put_items("tea", [api.ItemIn("green", [1.0]), api.ItemIn("black", [0.0])])
...     answer = await engine.rank(api.RankRequest("tea"))
...     click = api.EventIn("e1", answer.ranking_id, answer.items[1].id, "click")
...     print(await engine.feedback([click, click]))
...     await engine.close()
>>> asyncio.run(session())
FeedbackResponse(accepted=1, duplicate=1, rejected=0, results=[...])
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from ebrank.service import api
from ebrank.service.core import bulk, fixed_settings
from ebrank.service.core.background import TICK_SECONDS, Flusher, Housekeeping, Turns
from ebrank.service.core.bots import Bots
from ebrank.service.core.catalog import UNKNOWN, Catalog
from ebrank.service.core.chooser import Chooser, hashed
from ebrank.service.core.deletions import delete, proof_out
from ebrank.service.core.feature_changes import change_features, features_view
from ebrank.service.core.feedback import Feedback, FeedbackRules, RecentLists
from ebrank.service.core.fleet import (
    BEAT_SECONDS,
    ROLLER,
    TRAINER,
    About,
    Fleet,
    check_rules,
    rules,
)
from ebrank.service.core.items import FIRST_ITEM, Items, check_distinct
from ebrank.service.core.memory import Memory
from ebrank.service.core.queries.cache import Lookups, Queries
from ebrank.service.core.queries.names import naming, normalized
from ebrank.service.core.queries.pace import Pace
from ebrank.service.core.ranking_ids import RankingIds
from ebrank.service.core.serving import Serving
from ebrank.service.insight.activity import TOTALS, Activity
from ebrank.service.insight.arrivals import Arrivals
from ebrank.service.insight.overview import Overview
from ebrank.service.insight.query_report import query_view
from ebrank.service.learning.fitting import TrainingResult
from ebrank.service.learning.models import warm_up
from ebrank.service.learning.training import Training
from ebrank.service.learning.versions import ModelVersions
from ebrank.service.logs import about
from ebrank.service.settings import Settings
from ebrank.service.store.base import ANOTHER_EPOCH, SALT, Store, StoreError, UnknownQuery

GRACE_SECONDS = 300.0
"""Lists are kept this much longer than events about them are accepted, so that none counts twice:
an event may be under way, and another server's clock may be behind.
"""
SAVE_SECONDS = 5.0
TOLERATED_SECONDS = 5.0
"""Clocks are corrected by less than this all the time: no reason to warn."""
CHECKED = "checked"
LONG_QUERY = 200
"""Items that take a few milliseconds to examine."""
MEMORY_SHARES = (0.75, 0.125, 0.125)
"""Of queries, of lists that feedback may cite, and of lists that users have seen."""
CHECKED_BYTES = 32 * 1024
WEEK = 7 * 86400.0
MOST_PROOFS = 1000
"""Deletions that are listed."""

log = logging.getLogger("ebrank.service")
T = TypeVar("T")


class Engine:
    """Everything the service can do.

    Every method may raise a `problems.Problem`, which the caller can fix, or a `StoreError`: then
    the store cannot be used now, and the request may be sent again.

    One event loop owns an engine. Methods that wait for the store are coroutines.

    Attributes:
        flusher: puts writes on disk; metrics watch it.
        turns: schedules long calls.
        bots: recognizes bots by their rate; metrics watch it.
        fleet: this server among those of its store; metrics watch it.
        on_failure: called with what is wrong with the store when a list is made without it.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: MonotoneClock,
        timer: Callable[[], float],
        versions: ModelVersions,
        catalog: Catalog,
        meta: Mapping[str, str],
    ) -> None:
        """Take what `open` has read."""
        self._store = store
        self._settings = settings
        self._behaviors = settings.events.declared()
        self._now = clock
        self._timer = timer
        half_life = fixed_settings.half_life(meta)
        self._named = naming(normalize=settings.store.normalize_queries)
        self.bots = Bots(settings.bots)
        self._salt = meta[SALT]
        self._versions = versions
        self._queries = Queries(
            store,
            seed=settings.ranking.seed,
            behaviors=self._behaviors,
            catalog=catalog,
            half_life=half_life,
        )
        self._pace = Pace(
            self._queries, settings.ranking.plan_seconds, settings.ranking.k, half_life
        )
        self._catalog = catalog
        self._chooser = Chooser(settings, meta[SALT])
        self._activity = Activity(
            store, settings.insights, self._chooser.examination, meta.get(TOTALS)
        )
        self._recent = RecentLists(store, self.bots)
        caches = (self._queries, self._recent.cache, self._chooser.windows.cache)
        self._memory = Memory(
            settings.limits.memory_bytes(), list(zip(caches, MEMORY_SHARES, strict=True))
        )
        self._memory.start()
        first = FIRST_ITEM not in meta
        self._items = Items(store, catalog, self._queries, self._activity, first=first)
        rules = FeedbackRules(settings, self._behaviors, half_life)
        self._feedback = Feedback(
            store, rules, self._queries, self._recent, self._activity, self.bots, clock, timer
        )
        self._serving = Serving(
            store,
            settings,
            self._items,
            self._queries,
            catalog,
            versions,
            self._pace,
            self._chooser,
            self._recent,
            self._activity,
            self.bots,
            RankingIds(after=clock.last),
            clock,
            timer,
        )
        self._epoch = store.epoch
        self.flusher = Flusher(store)
        self.on_failure: Callable[[StoreError], None] = lambda problem: None
        self.turns = Turns()
        self._training = Training(
            settings, versions.fitted, self._adopt, lambda: self._activity.events, clock, timer
        )
        self._chores = Housekeeping(timer)
        self._arrivals = Arrivals(settings, self._queries, self._pace.planned)
        self.fleet = Fleet(store, self._about)
        self._overview = Overview(
            store,
            settings,
            self._queries,
            self._activity,
            self._arrivals,
            versions,
            self._training,
            self.fleet,
            clock,
            timer,
        )

    @classmethod
    async def open(
        cls,
        store: Store,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
    ) -> Engine:
        """Return an engine on a store.

        The clock dates the log; the timer is for what must continue even if the clock is set back.
        """
        now = MonotoneClock(clock, await store.log.last_time())
        await check_rules(store, settings)
        await fixed_settings.fix(store, settings, now())
        meta = await store.meta.all()
        versions = await ModelVersions.open(store, settings, now)
        catalog = await Catalog.open(store, settings.features)
        return cls(store, settings, now, timer, versions, catalog, meta)

    async def start(self) -> None:
        """Compile the scores and start the chores, before the first request."""
        self._activity.started(self._now())  # which warns if the clock is behind the log
        await self._store.flush()  # other servers rely on these settings
        await asyncio.to_thread(warm_up, self._versions.model, self._behaviors)
        self._memory.start()  # again: compiled code takes some
        await self._beat()
        self._chores.add(BEAT_SECONDS, self._beat)
        self._chores.add(TICK_SECONDS, self._adjust_memory)
        self._chores.add(SAVE_SECONDS, self._activity.save)
        self._chores.add(self._settings.store.roll_up_seconds, self._roll_up)
        self._chores.add(TICK_SECONDS, self._train_if_due)
        self._chores.add(self._arrivals.period, self._look_at_arrivals)

    async def close(self) -> None:
        """Finish requests under way, stop the trainer, flush; the store stays open."""
        await self._chores.close()
        await self._training.close()
        await self.flusher.close()
        try:
            await self._activity.save()
            await self.fleet.leave()
        except StoreError as problem:  # only sums for the dashboard
            log.warning("%s", problem)

    def watch_training(self, on_end: Callable[[float, str], None]) -> None:
        """Report how long each training run took, and its outcome."""
        self._training.on_end = on_end

    @property
    def version(self) -> int:
        """The version of the prior in use."""
        return self._versions.model.version

    @property
    def lookups(self) -> Lookups:
        """How often queries were found in memory."""
        return self._queries.lookups

    @property
    def clock_lag(self) -> float:
        """How many seconds the machine's clock is behind the log; 0 if it is right."""
        return self._now.lag

    async def check(self) -> None:
        """Write to the store and flush it; raise `StoreError` if it cannot.

        It writes as much as a long list: a disk with space for a row may have none for a list.
        """
        for value in ("-" * CHECKED_BYTES, str(self._now())):  # the store keeps the short one
            await self._store.meta.set({CHECKED: value})
        await self.flusher.flushed()

    def _begin(self) -> int:
        """Return the epoch of the store; discard what was remembered of an earlier one."""
        if self._store.epoch != self._epoch:
            self._epoch = self._store.epoch
            self._queries.clear()
            self._recent.cache.clear()
            self._chooser.windows.cache.clear()
            self._catalog.found = UNKNOWN
            self._versions.found(UNKNOWN)
        return self._epoch

    async def _flushed(self, epoch: int) -> None:
        """Return when everything written in an epoch is on disk."""
        await self.flusher.flushed()
        if self._store.epoch != epoch:
            raise StoreError(ANOTHER_EPOCH)

    async def put_items(self, query: str, items: Sequence[api.ItemIn]) -> api.PutItemsResponse:
        """Add candidates of a query or change their features; if one is wrong, none is stored."""
        epoch = self._begin()
        name = self._named(query)
        if len(items) > api.ITEMS_AT_ONCE:
            answer = await self._items.put_many(name, items, self._now, self.turns)
        else:
            answer = await self._items.put(name, items, self._now())
        await self._flushed(epoch)
        return answer

    async def withdraw(self, query: str, item: str) -> api.WithdrawResponse:
        """Withdraw a candidate; its history stays."""
        epoch = self._begin()
        answer = await self._items.withdraw(self._named(query), item, self._now())
        await self._flushed(epoch)
        return answer

    async def put_catalog(self, items: Sequence[api.ItemIn]) -> api.PutCatalogResponse:
        """Add items that queries share, or change them; if one is wrong, none is stored."""
        check_distinct(items)
        if len(items) > api.ITEMS_AT_ONCE:
            changed = await self._catalog.put_many(items, self._now, self.turns)
        else:
            changed = await self._catalog.put(items, self._now())
        await self.flusher.flushed()
        return api.PutCatalogResponse(len(items), changed)

    async def load_catalog(self, pieces: AsyncIterator[bytes]) -> api.BulkResponse:
        """Add or change many items that queries share, each line separately."""
        answer = await bulk.load(self._catalog, pieces, self._now)
        await self.flusher.flushed()
        return answer

    async def catalog_item(self, item: str) -> api.CatalogItem:
        """Return the features of an item that queries share."""
        return await self._catalog.item(item)

    async def features(self) -> api.FeaturesResponse:
        """Return the features that items have."""
        return await features_view(self._store, self._catalog.schema)

    async def change_features(self, request: api.ChangeFeaturesRequest) -> api.FeaturesResponse:
        """Add, remove and rename features, or say what that would change."""
        epoch = self._begin()
        answer = await change_features(self._store, self._catalog, request, self._now())
        await self._flushed(epoch)
        return answer

    async def rank(self, request: api.RankRequest) -> api.RankResponse:
        """Return a list; it is logged when this returns, or `degraded`."""
        try:
            return await _twice(lambda: self._logged_list(request))
        except StoreError as problem:
            answer = self._serving.list_from_memory(self._named(request.query), request)
            if answer is None:
                raise
            self.on_failure(problem)
            return answer

    async def _logged_list(self, request: api.RankRequest) -> api.RankResponse:
        began, now, epoch = time.perf_counter(), self._now(), self._begin()
        name = self._named(request.query)
        answer = await self._serving.logged_list(name, request, now, epoch)
        if self._settings.store.durability == "disk":
            await self._flushed(epoch)
        self._activity.latency(now, time.perf_counter() - began)
        return answer

    async def feedback(self, events: Sequence[api.EventIn | api.Malformed]) -> api.FeedbackResponse:
        """Count events; those accepted are on disk when this returns."""
        epoch = self._begin()
        results = await _twice(lambda: self._feedback.take(events, epoch))
        counts = Counter(result.status for result in results)
        if counts["accepted"] or counts["duplicate"]:
            await self._flushed(epoch)  # a duplicate too: its first copy may be on its way
        return api.FeedbackResponse(
            counts["accepted"], counts["duplicate"], counts["rejected"], results
        )

    async def query(self, query: str, wanted: api.QueryOptions | None = None) -> api.QueryResponse:
        """Return the state of a query's items, or of some if there are many."""
        wanted = wanted or api.QueryOptions()
        live, model = await self._items.query(self._named(query), self._now()), self._versions.model
        expected = self._pace.planned(live, model, self._now())
        turns = self.turns if len(live) > LONG_QUERY else Turns()  # a short one need not wait
        async with turns:
            k = self._settings.ranking.k
            return await query_view(live, model, k, expected, wanted, turns)

    async def queries(self, request: api.QueriesRequest) -> api.QueriesResponse:
        """Return a page of the queries whose names match."""
        fold = normalized if self._settings.store.normalize_queries else str
        found = await self._store.items.find(
            fold(request.prefix), fold(request.contains), request.cursor or None, request.limit + 1
        )
        listed = [api.ListedQuery(*row) for row in found[: request.limit]]
        more = len(found) > request.limit
        return api.QueriesResponse(listed, listed[-1].query if more else None)

    async def delete(self, request: api.DeletionRequest) -> api.DeletionOut:
        """Delete an item everywhere, a query, or a user's name; it is on disk when this returns."""
        epoch = self._begin()
        if request.kind == "query":  # its log is removed while others are served
            await self._queries.dropped(self._named(request.name))
        deleted = await delete(self._store, request, self._salt, self._named, self._now())
        for query in deleted.queries:
            await self._queries.dropped(query)
        self._recent.cache.clear()  # they name queries and users; what feedback cites is read again
        if request.kind == "user":  # what others have seen stays, or a refresh would count again
            await self._chooser.windows.forget(hashed(request.name, self._salt))
        await self._flushed(epoch)
        return proof_out(deleted.proof)

    async def deletions(self) -> api.DeletionsResponse:
        """Return the latest deletions."""
        proofs = await self._store.deletions.all()
        return api.DeletionsResponse(len(proofs), [proof_out(one) for one in proofs[-MOST_PROOFS:]])

    async def train(self) -> api.TrainResponse:
        """Start training unless it is running; its result may replace a pinned version."""
        epoch = self._begin()
        await self._versions.unpin()
        await self._flushed(epoch)
        started = self._training.start(self.version)
        return api.TrainResponse(started, self._training.out())

    async def models(self) -> api.ModelsResponse:
        """Return the versions of the prior."""
        versions, pinned = await self._versions.out(), self._versions.pinned
        training = self._training.out()
        prior = await self._versions.prior(training, self._training.failing_since)
        return api.ModelsResponse(self.version, pinned, versions, training, prior)

    async def activate(self, version: int) -> api.ModelsResponse:
        """Activate a version; unless it is the newest, it is pinned."""
        epoch = self._begin()
        await self._versions.activate(version)
        await self._flushed(epoch)
        return await self.models()

    def answered(self, route: str, status: int) -> None:
        """Count a response of a route."""
        self._activity.answered(self._now(), route, status)

    async def insights(self, hours: int = 1) -> api.Insights:
        """Return what the dashboard shows, with sums of some hours."""
        return await self._overview.insights(hours)

    async def _beat(self) -> None:
        await self.fleet.beat()
        self._activity.shared = self.fleet.size > 1

    def _about(self) -> About:
        own, lookups = self._activity.own, self.lookups
        return About(
            model=self.version,
            lists=own["rankings"],
            events=own["events"],
            from_memory=lookups.memory,
            from_store=lookups.store,
            stale=lookups.stale,
            clock_lag=self.clock_lag,
            rules=rules(self._settings),
        )

    async def _adjust_memory(self) -> None:
        self._memory.adjust()

    async def _look_at_arrivals(self) -> None:
        await self._arrivals.look(self._versions.model, self._now())

    async def _train_if_due(self) -> None:
        if self._training.due() and await self._store.elected(TRAINER):
            self._training.start(self.version)

    async def _adopt(self, fitted: TrainingResult, against: int) -> str:
        epoch = self._begin()
        outcome = await self._versions.adopt(fitted, against)
        await self._flushed(epoch)
        return outcome

    async def _roll_up(self) -> None:
        if not await self._store.elected(ROLLER):
            return
        now, kept = self._now(), self._settings.store.retention_seconds
        oldest = now - max(kept, WEEK)  # minute, since the dashboard shows a week
        before = now - kept - min(kept, GRACE_SECONDS)
        rolled = await self._store.log.roll_up(before, minutes_before=oldest)
        log.info(
            "rolled up %d rankings and %d events",
            rolled.rankings,
            rolled.events,
            extra=about("chore", rankings=rolled.rankings, events=rolled.events),
        )


async def _twice(call: Callable[[], Awaitable[T]]) -> T:
    """Return what a call returns; call again if another server has deleted a query meanwhile.

    Memory has then dropped the query; if it was added again, it is read as it is now.
    """
    try:
        return await call()
    except UnknownQuery:
        return await call()


class MonotoneClock:
    """The clock of the log: it never goes back, even if the machine's does.

    While the machine's clock is behind the log, times in the log stand still; it warns once.
    Chores and windows, which must go on anyway, use `time.monotonic`.

    >>> readings = iter([10.0, 7.0, 11.0])
    >>> clock = MonotoneClock(lambda: next(readings), last=9.0)
    >>> clock(), clock(), clock()
    (10.0, 10.0, 11.0)

    Attributes:
        last: what it returned last.
    """

    def __init__(self, clock: Callable[[], float], last: float = 0.0) -> None:
        self._clock = clock
        self.last = last
        self._warned = False

    def __call__(self) -> float:
        """Return the time in seconds since 1970, never less than before; warn if it stands still.

        It warns again if the clock has caught up and falls behind again.
        """
        reading = self._clock()
        self.last = max(self.last, reading)
        behind = self.last - reading
        if behind > TOLERATED_SECONDS and not self._warned:
            log.warning(
                "the clock is %.0f s behind the log, whose time stands still until it catches up.  "
                "Check the machine's clock",
                behind,
            )
        self._warned = behind > TOLERATED_SECONDS
        return self.last

    @property
    def lag(self) -> float:
        """How many seconds the machine's clock is behind the log; 0 if it is right."""
        return max(self.last - self._clock(), 0.0)
