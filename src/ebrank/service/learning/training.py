"""When the server refits the prior, and which version of it ranks.

A run never blocks a request: it is a process (`fitting`), or a thread if the store is in memory.
Only the server writes, and it stores and activates a model in one transaction; so whenever a
process is killed, there is a version to serve with.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict

import msgspec

from ebrank.errors import EBRankError
from ebrank.service import api
from ebrank.service.core.models import NO, PINNED, YES, Model, own_fits
from ebrank.service.core.problems import NotFound
from ebrank.service.core.resources import Resources
from ebrank.service.learning.fitting import (
    LEARNED_FROM,
    TrainingJob,
    TrainingResult,
    in_process,
    in_thread,
)
from ebrank.service.logs import about
from ebrank.service.settings import Settings
from ebrank.service.store.records import ModelRecord

REFUSED = "refused_since"
"""The setting of the store that says since when the newest version is off; empty if it is live."""

RETRY_SECONDS = 60.0
"""After a run that failed, one that a deletion asks for waits this long."""

log = logging.getLogger("ebrank.service")

Run = Callable[[TrainingJob], Awaitable[TrainingResult]]
Adopt = Callable[[TrainingResult, int], Awaitable[str]]
"""Takes the result of a run, and the version it was judged against."""


def job(settings: Settings, active: int, arms: tuple[str, ...] = ()) -> TrainingJob:
    """Return what the settings say to fit, and for which arms."""
    return TrainingJob(
        active=active,
        policy=settings.ranking.policy,
        examination=settings.examination,
        behaviors=settings.events.behaviors,
        scaling=settings.features.scaling,
        fill_by_mean=settings.features.fills_by_mean,
        min_rows=settings.training.min_rows,
        tolerance=settings.training.tolerance,
        arms=arms,
    )


class Training:
    """Starts runs: on demand, on a schedule, after a number of events; one at a time.

    Attributes:
        failing_since: when the first of the latest failures was, None if the last run succeeded.
        ended: when the last run that "succeeded", or "failed", ended; a result that stays off is
            a success.
        asked: whether a run should start as soon as none is under way.
        on_end: called with the seconds that each run took, and its outcome.
    """

    def __init__(
        self, resources: Resources, run: Run, adopt: Adopt, events: Callable[[], int]
    ) -> None:
        """Take what runs a job, what takes its result, and how many events were ever accepted.

        The clock dates runs; the timer decides when they are due, even if the clock is set back.
        The first scheduled run is one interval from now.
        """
        self._settings, self._clock = resources.settings, resources.clock
        self._timer, self._active = resources.timer, resources.active
        self._run = run
        self._adopt = adopt
        self._task: asyncio.Task[None] | None = None
        self._count_events = events
        self._events_before = events()  # the last run
        self._last = self._timer()
        self._started: float | None = None
        self._finished: float | None = None
        self._outcome = ""
        self.failing_since: float | None = None
        self.ended: dict[str, float] = {}
        self.asked = resources.active.deployment.waits
        self.on_end: Callable[[float, str], None] = lambda seconds, outcome: None

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._task is not None and not self._task.done()

    @property
    def _events(self) -> int:
        """How many events were accepted since the last run began."""
        return self._count_events() - self._events_before

    @property
    def _events_needed(self) -> int | None:
        """How many new events start a run: few at first, then more; None if none ever do."""
        settings = self._settings.training
        if settings.after_events == 0:
            return None
        return max(settings.after_events, math.ceil(settings.after_growth * self._events_before))

    def start(self, active: int) -> bool:
        """Start a run to beat the active version, unless one is under way."""
        if self.running:
            return False
        self._events_before, self._last = self._count_events(), self._timer()
        self._started, self._finished, self.asked = self._clock(), None, False
        arms = own_fits(self._settings, self._active.experiments)
        self._task = asyncio.create_task(self._train(job(self._settings, active, arms)))
        return True

    def due(self) -> bool:
        """Return whether it is time for a run: if asked for, or with new events."""
        needed, every = self._events_needed, self._settings.training.every_seconds
        by_events = needed is not None and self._events >= needed
        by_time = every > 0 and self._events > 0 and self._waited() >= every
        return not self.running and (self.asked or by_events or by_time)

    def may_retry(self) -> bool:
        """Return whether the last run did not just fail."""
        return self.failing_since is None or self._waited() >= RETRY_SECONDS

    def out(self) -> api.TrainingOut:
        """Return the state of training."""
        needed, every = self._events_needed, self._settings.training.every_seconds
        return api.TrainingOut(
            running=self.running,
            started=self._started,
            finished=self._finished,
            outcome=self._outcome,
            next_events=None if needed is None else max(needed - self._events, 0),
            next_time=self._clock() + max(every - self._waited(), 0.0) if every else None,
        )

    def _waited(self) -> float:
        """Return the seconds since the last run began."""
        return self._timer() - self._last

    async def finished(self) -> None:
        """Return when no run is under way."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop a run; it has not changed anything yet."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _train(self, task: TrainingJob) -> None:
        try:
            self._outcome = await self._adopt(await self._run(task), task.active)
            self.failing_since = None
        except EBRankError as problem:
            self._failed(str(problem))
        except Exception as problem:  # perhaps no more processes: the next run may do better
            log.exception("a training run failed", extra=about("training"))
            self._failed(f"the run failed: {type(problem).__name__}: {problem}")
        finally:
            self._finished = self._clock()
        self.ended["failed" if self.failing_since else "succeeded"] = self._finished
        seconds = self._timer() - self._last
        log.info("%s", self._outcome, extra=about("training", seconds=seconds))
        self.on_end(seconds, self._outcome)

    def _failed(self, outcome: str) -> None:
        self._outcome = outcome
        self.failing_since = self.failing_since or self._clock()


class ModelVersions:
    """The versions of the prior: which one ranks, how to add one, and how to go back."""

    def __init__(self, resources: Resources) -> None:
        self._store = resources.store
        self._settings = resources.settings
        self._now = resources.clock
        self._active = resources.active

    @classmethod
    async def open(cls, resources: Resources) -> ModelVersions:
        """Return the versions of a store."""
        versions = cls(resources)
        await versions._prune()
        return versions

    @property
    def _model(self) -> Model:
        return self._active.model

    async def out(self, most: int | None = None) -> list[api.ModelOut]:
        """Return the versions that are kept, or the newest and the active one, oldest first."""
        active, records = self._model.version, await self._store.models.all()
        if most is not None:
            older = [record for record in records[:-most] if record.version == active]
            records = older + records[-most:]
        return [
            msgspec.convert({**asdict(each), "active": each.version == active}, api.ModelOut)
            for each in records
        ]

    async def prior(self, runs: Training) -> api.PriorOut:
        """Return whether lists use what was learned last, and if not, why."""
        training = runs.out()
        if self._model.unused:
            return api.PriorOut("unused", self._model.unused, self._active.since)
        if runs.failing_since is not None:
            return api.PriorOut("failing", training.outcome, runs.failing_since)
        newest = (await self._store.models.all())[-1:]
        reason = newest[0].reason if newest else ""
        refused = await self._store.meta.get(REFUSED)
        if refused:
            if newest and newest[0].activated:  # it was live
                reason = f"version {self._model.version} was made active by hand instead"
            return api.PriorOut("refused", reason, float(refused))
        if self._model.version == 0:
            return api.PriorOut("untrained", training.outcome or "no run yet", training.finished)
        return api.PriorOut("live", reason, self._active.since)

    async def activate(self, version: int) -> None:
        """Activate a version; on disk after the next flush.

        Going back has a reason that no validation loss shows, so the version is pinned.
        """
        if version and await self._store.models.document(version) is None:
            raise NotFound(f"there is no model {version}", "version")
        deployment = await self._active.load(version)
        pinned = version < await self._store.models.newest()
        refused = await self._refused_since(self._now()) if pinned else ""
        meta = {PINNED: YES if pinned else NO, REFUSED: refused}
        await self._store.models.activate(version, meta=meta)
        self._active.use(deployment, pinned=pinned)

    async def unpin(self) -> None:
        """Let runs replace the active version again; on disk after the next flush."""
        if self._active.pinned:
            await self._store.models.activate(self._model.version, meta={PINNED: NO})
            self._active.pinned = False

    async def fitted(self, job: TrainingJob) -> TrainingResult:
        """Return the result of a job: from a process, if it can read the store."""
        url = self._store.url
        if url is None:
            return await in_thread(self._store, job)
        return await in_process(url, job, self._settings.training.max_seconds)

    async def adopt(self, fitted: TrainingResult, against: int) -> str:
        """Keep a new version, go live with it if it is better, and return the outcome.

        It is on disk after the next flush: until then a power cut brings back the last one. It does
        not go live if the version it was judged against has been replaced or pinned: that would
        undo a decision made meanwhile.
        """
        if fitted.document is None:
            return f"no new version: {fitted.reason}"
        await self._active.follow()  # other servers decide too
        live, reason = fitted.better, fitted.reason
        if live and against != self._model.version:
            live = False
            reason += f"; but version {self._model.version} was made active during the run"
        elif live and self._active.pinned:
            live = False
            reason += f"; but version {self._model.version} was made active by hand and is pinned"
        version = 1 + await self._store.models.newest()
        record = ModelRecord(
            version=version,
            created=self._now(),
            rows=fitted.rows,
            validation_loss=fitted.validation_loss,
            previous_loss=fitted.previous_loss,
            activated=live,
            reason=reason,
            features=fitted.features,
        )
        live = await self._store.models.add(
            record, fitted.document.encode(), fitted.arms, instead_of=against, unless={PINNED: YES}
        )
        refused = "" if live else await self._refused_since(record.created)
        judged = live or not fitted.better
        learned_from = f"{version if live else against} {fitted.digest}" if judged else ""
        await self._store.meta.set({REFUSED: refused, LEARNED_FROM: learned_from})
        if live:
            self._active.use(await self._active.load(version))
        await self._prune()
        return f"version {version} {'went live' if live else 'stays off'}: {reason}"

    async def _refused_since(self, now: float) -> str:
        return await self._store.meta.get(REFUSED) or repr(now)

    async def _prune(self) -> None:
        """Remove old versions, but keep the active one and the last one live before it."""
        records, active = await self._store.models.all(), self._model.version
        live = [record.version for record in records if record.activated]
        staying = {active, *[version for version in live if version < active][-1:]}
        old = [record.version for record in records[: -self._settings.models.keep]]
        forgotten = [version for version in old if version not in staying]
        if forgotten:
            await self._store.models.remove(forgotten)
