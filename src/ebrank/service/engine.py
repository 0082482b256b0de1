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
import json
import logging
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Self, TypeVar

from ebrank.service import api
from ebrank.service.core import catalog, experiments
from ebrank.service.core.agreed_settings import rules
from ebrank.service.core.background import (
    GRACE_SECONDS,
    TICK_SECONDS,
    Failures,
    Flusher,
    Housekeeping,
    Turns,
)
from ebrank.service.core.deletions import delete, proof_out, retract
from ebrank.service.core.feature_changes import change_features, features_view
from ebrank.service.core.fleet import BEAT_SECONDS, ROLLER, TRAINER, Fleet
from ebrank.service.core.items import Items, check_distinct
from ebrank.service.core.memory import Memory
from ebrank.service.core.models import UNKNOWN, warm_up
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.core.queries import naming, normalized
from ebrank.service.core.resources import Resources
from ebrank.service.insight.activity import Activity
from ebrank.service.insight.arrivals import Arrivals
from ebrank.service.insight.overview import Overview
from ebrank.service.insight.readout import readout
from ebrank.service.insight.survey import query_view
from ebrank.service.learning.fitting import TrainingResult
from ebrank.service.learning.training import ModelVersions, Training
from ebrank.service.logs import about
from ebrank.service.serving.feedback import Feedback
from ebrank.service.serving.reranking import as_list, reranked
from ebrank.service.serving.serving import Serving
from ebrank.service.serving.stages import Stages
from ebrank.service.settings import Settings
from ebrank.service.store.base import (
    SALT,
    WRITES_LOST,
    Conflict,
    Store,
    StoreError,
    UnknownQuery,
    hashed,
)
from ebrank.service.store.records import StoreSize

SAVE_SECONDS = 5.0
LOOK_SECONDS = 15.0
"""As often as Prometheus usually looks; the size of a large database takes a while."""
CHECKED = "checked"
LONG_QUERY = 200
"""Items that take a few milliseconds to examine."""
MEMORY_SHARES = (0.75, 0.125, 0.125)
"""Of queries, of lists that feedback may cite, and of lists that users have seen."""
CHECKED_BYTES = 32 * 1024
DAY = 86400.0
WEEK = 7 * DAY
MOST_EXPIRED = 1000
"""Idle queries that are deleted after a roll-up, so that the next one is not late."""
EXPIRED = "expired"
"""The setting that holds how many queries have expired: proofs of each would grow without end."""
EXPIRING = "expiring"
"""The setting that says since when queries could expire without a pause, and when they last could.
"""
UNLEARNED = "unlearned"
"""The setting that holds how much had been deleted when the last good training run began."""
MOST_PROOFS = 1000
"""Deletions that are listed."""
MOST_RETRIES = 9
"""Of a request whose query others delete or retract while it is written."""
MOST_SHOWN = 20
"""Versions of the prior that the dashboard requests again and again."""

log = logging.getLogger("ebrank.service")
T = TypeVar("T")


class Engine:
    """Everything the service can do.

    Every method may raise a `problems.Problem`, which the caller can fix, or a `StoreError`: then
    the store cannot be used now, or another write came first (`Conflict`), and the request may be
    sent again.

    One event loop owns an engine. Methods that wait for the store are coroutines.

    Attributes:
        resources: what it was opened with.
        flusher: puts writes on disk; metrics watch it.
        turns: schedules long calls.
        fleet: this server among those of its store; metrics watch it.
        lookups: how often queries were found in memory; metrics watch it.
        prior_state: whether lists use what was learned last, None before the start; metrics watch
            it.
        store_size: of the store, None if it has no disk; metrics watch it.
        failures: of the store.
    """

    def __init__(self, resources: Resources, versions: ModelVersions) -> None:
        """Take what `open` has read."""
        self.resources = resources
        store, settings, timer = resources.store, resources.settings, resources.timer
        self._store, self._settings, self._timer = store, settings, timer
        self._now, self._catalog = resources.clock, resources.catalog
        self._queries, self.lookups = resources.queries, resources.queries.lookups
        self._named = naming(normalize=settings.store.normalize_queries)
        self._incarnation = store.incarnation
        self.fleet = Fleet(store, self._about)
        self._activity = Activity(resources, self.fleet)
        self.stages = Stages(resources, self._activity)
        self._items = Items(resources, self.fleet, self._activity)
        self._feedback = Feedback(resources, self.stages, self._activity)
        self._serving = Serving(resources, self._items, self.stages)
        self._caches = (self._queries, resources.recent, self.stages.windows.cache)
        self._memory = Memory(
            settings.limits.memory_bytes(), list(zip(self._caches, MEMORY_SHARES, strict=True))
        )
        self._memory.start()
        self._versions = versions
        self._training = Training(
            resources, versions.fitted, self._adopt, lambda: self._activity.events
        )
        self._arrivals = Arrivals(resources)
        self._overview = Overview(resources, self._activity, self._arrivals, self.stages.budget)
        self.flusher = Flusher(store)
        self.turns = Turns()
        self._chores = Housekeeping(timer)
        self._rolled_up = timer()
        self._readout: tuple[experiments.Experiment | None, float, api.ExperimentOut | None]
        self._readout = None, -math.inf, None  # of the experiment that runs, kept until a time
        self._unlearning = 0  # how much had been deleted when the training run under way began
        self.failures = Failures(timer)
        self.prior_state: api.PriorState | None = None
        self.store_size: StoreSize | None = None

    @classmethod
    async def open(
        cls,
        store: Store,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Return an engine on a store.

        The clock dates the log; the timer is for what must continue even if the clock is set back,
        and tells when it jumps.
        """
        resources = await Resources.open(store, settings, clock, timer)
        return cls(resources, await ModelVersions.open(resources))

    async def start(self) -> None:
        """Compile what lists need and start the chores, before the first request."""
        self._activity.started(self._now())  # which warns if the clock is behind the log
        await self._store.flush()  # other servers rely on these settings
        model = self.resources.active.model
        await asyncio.to_thread(warm_up, model, self.resources.behaviors, whole=False)
        self._memory.start()  # again: compiled code takes some
        await self.fleet.beat()
        await self._look_at_store()
        for seconds, chore in (
            (BEAT_SECONDS, self.fleet.beat),
            (BEAT_SECONDS, self._follow_experiments),  # on its own: a new arm may be compiled
            (TICK_SECONDS, self._adjust_memory),
            (LOOK_SECONDS, self._look_at_store),
            (SAVE_SECONDS, self._activity.save),
            (SAVE_SECONDS, self.stages.budget.save),
            (self._settings.store.roll_up_seconds, self._roll_up),
            (TICK_SECONDS, self._train_if_due),
            (TICK_SECONDS, self._share),
            (self._arrivals.period, self._arrivals.look),
        ):
            self._chores.add(seconds, chore)

    async def warm_up(self) -> None:
        """Compile, or load from the cache, what lists did not need but other requests will."""
        await asyncio.to_thread(warm_up, self.resources.active.model, self.resources.behaviors)

    async def close(self) -> None:
        """Finish requests under way, stop the trainer, flush; the store stays open."""
        await self._chores.close()
        await self._training.close()
        await self.flusher.close()
        try:
            await self._activity.save()
            await self.stages.budget.save()
            await self.fleet.leave()
        except StoreError as problem:  # only sums for the dashboard
            log.warning("%s", problem)

    @property
    def version(self) -> int:
        """The version of the prior in use."""
        return self.resources.active.model.version

    @property
    def trainings(self) -> Mapping[str, float]:
        """When the last training run of this server that succeeded, or failed, ended."""
        return self._training.ended

    @property
    def roll_up_lag(self) -> float:
        """How many seconds ago the log was rolled up, or another server was responsible for it."""
        return self._timer() - self._rolled_up

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
        """Return the incarnation of the store; discard what was remembered of an earlier one."""
        if self._store.incarnation != self._incarnation:
            self._incarnation = self._store.incarnation
            for cache in self._caches:
                cache.clear()
            self.resources.sharing.clear()
            self._catalog.stored = self.resources.active.stored = UNKNOWN
        return self._incarnation

    async def _flushed(self, incarnation: int) -> None:
        """Return when everything written in an incarnation is on disk."""
        await self.flusher.flushed()
        if self._store.incarnation != incarnation:
            raise StoreError(WRITES_LOST)
        self.failures.end()

    @asynccontextmanager
    async def _on_disk(self) -> AsyncIterator[None]:
        """Leave when everything written inside is on disk."""
        incarnation = self._begin()
        yield
        await self._flushed(incarnation)

    async def put_items(self, query: str, items: Sequence[api.ItemIn]) -> api.PutItemsResponse:
        """Add candidates of a query or change their features; if one is wrong, none is stored."""
        name = self._named(query)
        async with self._on_disk():
            return await self._current(lambda: self._items.put(name, items, self._now, self.turns))

    async def _current(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what a call returns; call again if its items fit features that others changed.

        Otherwise a server whose callers all send a new feature would never learn of it.
        """
        try:
            return await call()
        except Problem as problem:
            before = self._catalog.schema
            if problem.field == "items":
                await self._catalog.follow()
            if self._catalog.schema is before:
                raise
            return await call()

    async def withdraw(self, query: str, item: str) -> api.WithdrawResponse:
        """Withdraw a candidate; its history stays."""
        async with self._on_disk():
            return await self._items.withdraw(self._named(query), item, self._now())

    async def put_catalog(self, items: Sequence[api.ItemIn]) -> api.PutCatalogResponse:
        """Add items that queries share, or change them; if one is wrong, none is stored."""
        check_distinct(items)
        async with self._on_disk():
            changed = await self._current(
                lambda: self._catalog.put_many(items, self._now, self.turns)
            )
        return api.PutCatalogResponse(len(items), changed)

    async def load_catalog(self, pieces: AsyncIterator[bytes]) -> api.BulkResponse:
        """Add or change many items that queries share, each line separately."""
        async with self._on_disk():
            await self._catalog.follow()  # lines that do not fit its features are not read twice
            return await catalog.load(self._catalog, pieces, self._now)

    async def catalog_item(self, item: str) -> api.CatalogItem:
        """Return an item that queries share."""
        return await self._catalog.item(item)

    async def catalog_items(self, request: api.CatalogRequest) -> api.CatalogResponse:
        """Return a page of the items that queries share."""
        return await self._catalog.page(request)

    async def withdraw_from_all(self, item: str) -> api.WithdrawFromAllResponse:
        """Withdraw an item that queries share from all of them; its history stays."""
        async with self._on_disk():
            withdrawn = await self._catalog.withdraw(item, self._now())
        return api.WithdrawFromAllResponse(item, withdrawn)

    async def features(self) -> api.FeaturesResponse:
        """Return the features that items have."""
        return await features_view(self._store, self._catalog.schema)

    async def change_features(self, request: api.ChangeFeaturesRequest) -> api.FeaturesResponse:
        """Add, remove and rename features, or say what that would change."""
        async with self._on_disk():
            return await change_features(self._store, self._catalog, request, self._now())

    async def rank(
        self,
        request: api.RankRequest,
        admit: Callable[[], None] = lambda: None,
        token: str | None = None,
    ) -> api.RankResponse:
        """Return a list; it is logged when this returns, or uncounted.

        `admit` is called before the request creates a query, and raises if it must not; `token` is
        the name of the caller's, for the log.
        """

        async def logged() -> api.RankResponse:
            began, now, incarnation = time.perf_counter(), self._now(), self._begin()
            name = self._named(request.query)
            answer = await self._serving.made_list(name, request, now, incarnation, admit, token)
            if self._settings.store.durability == "disk":
                await self._flushed(incarnation)
            self._activity.latency(now, time.perf_counter() - began)
            self.failures.end()
            return answer

        try:
            return await self._current(lambda: _retried(logged))
        except Conflict:
            raise
        except StoreError as problem:
            answer = self._serving.list_from_memory(self._named(request.query), request)
            if answer is None:
                raise
            self.failures.add(problem)
            return answer

    async def rerank(
        self,
        request: api.RerankRequest,
        admit: Callable[[], None] = lambda: None,
        token: str | None = None,
    ) -> api.RerankResponse:
        """Return documents as a list of items in the shape of Cohere's API; see `rank`."""
        try:
            return reranked(request, await self.rank(as_list(request), admit, token))
        except Problem as problem:
            problem.field = "documents" if problem.field == "items" else problem.field
            raise

    async def feedback(self, events: Sequence[api.EventIn | api.Malformed]) -> api.FeedbackResponse:
        """Count events; those accepted are on disk when this returns."""
        incarnation = self._begin()
        results = await _retried(lambda: self._feedback.take(events, incarnation))
        counts = Counter(result.status for result in results)
        if counts["accepted"] or counts["duplicate"]:
            await self._flushed(incarnation)  # a duplicate too: its first copy may be on its way
        return api.FeedbackResponse(
            counts["accepted"], counts["duplicate"], counts["rejected"], results
        )

    async def query(self, query: str, wanted: api.QueryOptions | None = None) -> api.QueryResponse:
        """Return the state of a query's items, or of some if there are many."""
        wanted = wanted or api.QueryOptions()
        live = await self._items.query(self._named(query), self._now())
        turns = self.turns if len(live) > LONG_QUERY else Turns()  # a short one need not wait
        async with turns:
            return await query_view(self.resources, live, wanted, turns)

    async def queries(self, request: api.QueriesRequest) -> api.QueriesResponse:
        """Return a page of the queries whose names match."""
        fold = normalized if self._settings.store.normalize_queries else str
        rows = await self._store.items.find(
            fold(request.prefix), fold(request.contains), request.cursor or None, request.limit + 1
        )
        listed = [api.ListedQuery(*row) for row in rows[: request.limit]]
        more = len(rows) > request.limit
        return api.QueriesResponse(listed, listed[-1].query if more else None)

    async def delete(self, request: api.DeletionRequest) -> api.DeletionOut:
        """Delete an item everywhere, a query, or a user's name; it is on disk when this returns."""
        salt = self.resources.meta[SALT]
        async with self._on_disk():
            if request.kind == "query":  # its log is removed while others are served
                await self._queries.dropped(self._named(request.name))
            proof, queries = await delete(self._store, request, salt, self._named, self._now())
            await self._changed(queries)
            # Lists name queries and users; what feedback cites is read again.
            self.resources.recent.clear()
            if request.kind == "user":  # what others saw stays, or a refresh would count again
                await self.stages.windows.forget(hashed(request.name, salt))
        return proof

    async def retract(self, request: api.RetractionRequest) -> api.RetractionResponse:
        """Take back what lists and events added to counters, or say what that would be."""
        salt = self.resources.meta[SALT]
        async with self._on_disk():
            response, queries = await retract(self._store, request, salt, self._named, self._now())
            await self._changed(queries)  # the proof asks for training
        return response

    async def _changed(self, queries: Sequence[str]) -> None:
        """Forget what memory holds of queries that have lost something, and their messages."""
        for query in queries:
            await self._queries.dropped(query)
        self.resources.sharing.forget(queries)

    async def deletions(self) -> api.DeletionsResponse:
        """Return the latest deletions."""
        proofs = await self._store.deletions.all()
        latest = [proof_out(proof) for proof in proofs[-MOST_PROOFS:]]
        return api.DeletionsResponse(len(proofs), latest)

    async def train(self) -> api.TrainResponse:
        """Start training unless it is running; its result may replace a pinned version."""
        async with self._on_disk():
            await self._versions.unpin()
        return api.TrainResponse(await self._start_training(), self._training.out())

    async def models(self) -> api.ModelsResponse:
        """Return the versions of the prior."""
        state, pinned = await self._learning(), self.resources.active.pinned
        return api.ModelsResponse(self.version, pinned, *state)

    async def _learning(
        self, most: int | None = None
    ) -> tuple[list[api.ModelOut], api.TrainingOut, api.PriorOut]:
        """Return the versions of the prior, or the newest ones, and the state of training."""
        models, prior = await self._versions.out(most), await self._versions.prior(self._training)
        return models, self._training.out(), prior

    async def activate(self, version: int) -> api.ModelsResponse:
        """Activate a version; unless it is the newest, it is pinned."""
        async with self._on_disk():
            await self._versions.activate(version)
        return await self.models()

    async def start_experiment(self, request: api.StartExperimentRequest) -> api.ExperimentOut:
        """Start an experiment; other servers follow within seconds."""
        await self._changed_experiments(
            lambda text: experiments.started(text, request, self._now())
        )
        return await self.experiment(request.name)

    async def change_experiment(
        self, name: str, request: api.ChangeExperimentRequest
    ) -> api.ExperimentOut:
        """Change shares or arms of a running experiment."""
        now = self._now()
        await self._changed_experiments(lambda text: experiments.changed(text, name, request, now))
        return await self.experiment(name)

    async def stop_experiment(self, name: str) -> api.ExperimentOut:
        """Stop an experiment; its readout stays."""
        await self._changed_experiments(lambda text: experiments.stopped(text, name, self._now()))
        return await self.experiment(name)

    async def _changed_experiments(self, change: Callable[[str], str]) -> None:
        await self._activity.save()  # before lists of other arms
        async with self._on_disk():
            await self._store.meta.change(experiments.EXPERIMENTS, change)
            await self._follow_experiments()

    async def _follow_experiments(self) -> None:
        if await self.resources.active.follow_experiments():
            self.resources.sharing.clear()  # queries may be in other arms now
            self._training.asked |= self.resources.active.deployment.waits

    async def experiment(self, name: str) -> api.ExperimentOut:
        """Return an experiment and its readout."""
        experiment = experiments.named(self.resources.active.experiments, name)
        await self._activity.save()
        return await self._read_out(experiment)

    async def _read_out(self, experiment: experiments.Experiment) -> api.ExperimentOut:
        sums = await self._store.meta.arm_sums(experiment.name)
        waits = self.resources.active.deployment.waits
        # Of many cells, it takes longer than a list should wait.
        return await asyncio.to_thread(readout, experiment, sums, waits=waits)

    async def experiments(self) -> api.ExperimentsResponse:
        """Return all experiments and their readouts."""
        await self._activity.save()
        every = self.resources.active.experiments.values()
        return api.ExperimentsResponse([await self._read_out(each) for each in list(every)])

    async def resume_exploration(self) -> api.BudgetOut:
        """Explore again after exploration has stopped by itself, and compare from now on."""
        budget = self.stages.budget
        if not budget.limited:
            raise NotFound(
                "exploration has no limit: the setting `ranking.exploration_budget` is off"
            )
        async with self._on_disk():
            await budget.resume()
        log.info("exploration resumed", extra=about("exploration", stopped=False))
        return budget.out()

    def answered(self, route: str, status: int) -> None:
        """Count a response of a route."""
        self._activity.answered(self._now(), route, status)

    async def insights(self, request: api.InsightsRequest | None = None) -> api.Insights:
        """Return what the dashboard shows."""
        hours = (request or api.InsightsRequest()).hours
        servers = await self.fleet.servers()
        learning, running = await self._learning(MOST_SHOWN), await self._running()
        size = self.store_size or await self._store.size()  # before the first look
        return await self._overview.insights(hours, servers, *learning, running, size)

    async def _running(self) -> api.ExperimentOut | None:
        """Return the experiment that runs; its readout is kept for a while, as it takes long."""
        running = experiments.running(self.resources.active.experiments)
        if running is None:
            return None
        known, until, _ = self._readout
        if known is not running or self._timer() >= until:
            shown = await self._read_out(running)
            until = self._timer() + self._settings.insights.refresh_seconds
            self._readout = running, until, shown
        return self._readout[-1]

    def _about(self) -> dict[str, Any]:
        own, lookups = self._activity.own, self.lookups
        return {
            "model": self.version,
            "lists": own["rankings"],
            "events": own["events"],
            "from_memory": lookups.memory,
            "from_store": lookups.store,
            "stale": lookups.stale,
            "clock_lag": self.clock_lag,
            "rules": rules(self._settings),
        }

    async def _adjust_memory(self) -> None:
        self._memory.adjust()

    async def _look_at_store(self) -> None:
        """Read what metrics show, so that they need not wait for a store that does not respond."""
        self.prior_state = (await self._versions.prior(self._training)).state
        self.store_size = await self._store.size()

    async def _train_if_due(self) -> None:
        if self._training.running:
            return
        deletions = await self._deletions()
        gone = bool(deletions) and deletions > int(await self._store.meta.get(UNLEARNED) or 0)
        due = self._training.due() or (gone and self._training.may_retry())
        if due and await self._store.elected(TRAINER):
            await self._start_training()

    async def _start_training(self) -> bool:
        """Start training unless it is running; what is deleted from now on asks for another run."""
        deletions = await self._deletions()
        started = self._training.start(self.version)
        if started:
            self._unlearning = deletions
        return started

    async def _deletions(self) -> int:
        """Return how much has been deleted; 0 if queries share nothing."""
        return await self._store.deletions.count() if self.resources.sharing.needed else 0

    async def _share(self) -> None:
        await self.resources.sharing.keep_up(await self._deletions())

    async def _adopt(self, fitted: TrainingResult, against: int) -> str:
        async with self._on_disk():
            outcome = await self._versions.adopt(fitted, against)
            if self._unlearning:  # only now: a run that crashed or failed has unlearned nothing
                await self._store.meta.set({UNLEARNED: str(self._unlearning)})
            return outcome

    async def _roll_up(self) -> None:
        if not await self._store.elected(ROLLER):
            self._rolled_up = self._timer()
            return
        kept = self._settings.store.retention_seconds
        oldest = self._now.ago(max(kept, WEEK))  # minute, since the dashboard shows a week
        before = self._now.ago(kept + min(kept, GRACE_SECONDS))
        rolled = await self._store.log.roll_up(before, minutes_before=oldest)
        self._rolled_up = self._timer()
        log.info(
            "rolled up %d rankings and %d events",
            rolled.rankings,
            rolled.events,
            extra=about("chore", rankings=rolled.rankings, events=rolled.events),
        )
        await self._expire()

    async def _expire(self) -> None:
        """Delete some queries that nobody has used for long; the next time, others.

        A pause of more than a day makes none of them idle: no server ran, a clock was wrong, or an
        old backup was restored.
        """
        days, expired = self._settings.store.expire_idle_days, 0
        if days is None:
            return
        now = self._now()
        since, last = json.loads(await self._store.meta.get(EXPIRING) or f"[0, {now}]")
        if not 0.0 <= now - last <= DAY + self._settings.store.roll_up_seconds:
            since = now
        await self._store.meta.set({EXPIRING: json.dumps([since, now])})
        before = now - days * DAY
        if since > before:
            return
        try:
            async for query in self._store.deletions.expire(before, MOST_EXPIRED):
                expired += 1
                await self._queries.dropped(query)
                self.resources.sharing.forget([query])
        finally:
            if expired:
                await self._store.meta.add(EXPIRED, {"queries": expired})
                log.info("%d idle queries expired", expired, extra=about("chore", queries=expired))


async def _retried(call: Callable[[], Awaitable[T]]) -> T:
    """Return what a call returns; call again if its query was deleted or retracted meanwhile.

    Memory has then dropped the query; if it is still there, it is read as it is now. Several
    retractions may come one after another.
    """
    for _ in range(MOST_RETRIES):
        with suppress(UnknownQuery):
            return await call()
    return await call()
