"""When the server refits the prior, and what happens to the result.

A run never blocks a request: it is a process (`trainer`), or a thread if the store is in memory.
Only the server writes, and it stores and activates a model in one transaction; so whenever a
process is killed, there is a version to serve with.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ebrank.errors import EBRankError
from ebrank.service import api
from ebrank.service.learning.fitting import TrainingJob, TrainingResult
from ebrank.service.logs import about
from ebrank.service.settings import Settings

log = logging.getLogger("ebrank.service")

Run = Callable[[TrainingJob], Awaitable[TrainingResult]]
Adopt = Callable[[TrainingResult, int], Awaitable[str]]
"""Takes the result of a run, and the version it was judged against."""


def job(settings: Settings, active: int) -> TrainingJob:
    """Return what the settings say to fit."""
    return TrainingJob(
        active=active,
        policy=settings.ranking.policy,
        examination=settings.examination,
        behaviors=settings.events.behaviors,
        scaling=settings.features.scaling,
        fill_by_mean=settings.features.fills_by_mean,
        min_rows=settings.training.min_rows,
        validation_share=settings.training.validation_share,
        tolerance=settings.training.tolerance,
        contexts=settings.contexts.most,
    )


class Training:
    """Starts runs: on demand, on a schedule, after a number of events; one at a time.

    Attributes:
        failing_since: when the first of the latest failures was, None if the last run succeeded.
        on_end: called with the seconds that each run took, and its outcome.
    """

    def __init__(
        self,
        settings: Settings,
        run: Run,
        adopt: Adopt,
        events: Callable[[], int],
        clock: Callable[[], float],
        timer: Callable[[], float],
    ) -> None:
        """Take what runs a job, what takes its result, and how many events were ever accepted.

        The clock dates runs; the timer decides when they are due, even if the clock is set back.
        The first scheduled run is one interval from now.
        """
        self._settings = settings
        self._run = run
        self._adopt = adopt
        self._clock = clock
        self._timer = timer
        self._task: asyncio.Task[None] | None = None
        self._count_events = events
        self._events_before = events()  # the last run
        self._last = timer()
        self._started: float | None = None
        self._finished: float | None = None
        self._outcome = ""
        self.failing_since: float | None = None
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
        self._started, self._finished = self._clock(), None
        self._task = asyncio.create_task(self._train(job(self._settings, active)))
        return True

    def due(self) -> bool:
        """Return whether it is time for a run; without new events it never is."""
        needed, every = self._events_needed, self._settings.training.every_seconds
        by_events = needed is not None and self._events >= needed
        by_time = every > 0 and self._events > 0 and self._waited() >= every
        return not self.running and (by_events or by_time)

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
        seconds = self._timer() - self._last
        log.info("%s", self._outcome, extra=about("training", seconds=seconds))
        self.on_end(seconds, self._outcome)

    def _failed(self, outcome: str) -> None:
        self._outcome = outcome
        self.failing_since = self.failing_since or self._clock()
