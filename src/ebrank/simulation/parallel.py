"""Trials side by side: kernels release the GIL, so threads over trials use all cores.

Each trial is a pure function of its arguments, so the outcome does not depend on how many run at a
time. Stopping leaves what is finished: in the store, if there is one, and in `Interrupted`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from ebrank.data.dataset import Dataset
from ebrank.errors import DataError, ParameterError
from ebrank.rankers.base import Ranker
from ebrank.simulation.compilation import compile_for
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import Progress, run_trial
from ebrank.simulation.result import Result, TrialResult
from ebrank.simulation.storage import Store
from ebrank.threads import available_threads

Task = tuple[int, int]
"""Which trial of which ranker."""
Finished = Callable[[list[Result]], None]


class Interrupted(KeyboardInterrupt):
    """A run that was stopped, with the results of the trials that were finished."""

    def __init__(self, results: list[Result]) -> None:
        super().__init__()
        self.results = results


class Stopped(Exception):
    """Raised inside a trial to end it."""


def run(
    dataset: Dataset,
    rankers: Sequence[Ranker],
    config: SimulationConfig | None = None,
    seed: int = 0,
    *,
    trials: int = 5,
    jobs: int = 1,
    store: Store | None = None,
    progress: Progress | None = None,
    finished: Finished | None = None,
) -> list[Result]:
    """Return the results of some rankers on a dataset, in their order.

    Args:
        dataset: a prepared dataset.
        rankers: all meet the same users, query by query.
        config: the experiment; the paper's by default.
        seed: trial i's draws come from a hash of (seed, i).
        trials: of each ranker.
        jobs: trials that run at a time; they share the cores. Never changes a result.
        store: where finished trials are kept, and looked for first.
        progress: called with the model updates done and to be done.
        finished: called with the results so far whenever a trial is done.

    Raises:
        Interrupted: on Ctrl-C, with the results of what is finished.
    """
    config = config or SimulationConfig()
    _check(dataset, trials, jobs)
    config.session_count(dataset)  # refuses what is too short before any work is done
    if store is not None and (store.dataset, store.config, store.seed) != (dataset, config, seed):
        raise ParameterError("the store is for another dataset, config or seed")
    batch = _Batch(dataset, rankers, config, seed, store, _Meter(progress))
    tasks = [(index, trial) for trial in range(trials) for index in range(len(rankers))]
    try:
        left = batch.take_stored(tasks)
        batch.meter.begin(len(batch.done) * config.updates, len(tasks) * config.updates)
        if finished is not None:
            finished(batch.results())
        if left:
            compile_for(dataset, dict.fromkeys(rankers[index] for index, _ in left), config)
            batch.run(left, min(jobs, len(left)), finished)
        return batch.results()
    except KeyboardInterrupt:
        raise Interrupted(batch.results()) from None


class _Batch:
    """Trials to be run, and those done."""

    def __init__(
        self,
        dataset: Dataset,
        rankers: Sequence[Ranker],
        config: SimulationConfig,
        seed: int,
        store: Store | None,
        meter: _Meter,
    ) -> None:
        self.dataset = dataset
        self.rankers = rankers
        self.config = config
        self.seed = seed
        self.store = store
        self.meter = meter
        self.done: dict[Task, TrialResult] = {}

    def take_stored(self, tasks: Sequence[Task]) -> list[Task]:
        """Take what is in the store; return the tasks that are left."""
        for index, trial in tasks if self.store is not None else ():
            assert self.store is not None
            stored = self.store.load(self.rankers[index], trial)
            if stored is not None:
                self.done[index, trial] = stored
        return [task for task in tasks if task not in self.done]

    def run(self, tasks: Sequence[Task], jobs: int, finished: Finished | None) -> None:
        """Run the tasks, so many at a time."""
        threads = max(1, available_threads() // jobs)
        with ThreadPoolExecutor(jobs) as pool:
            futures: dict[Future[TrialResult], Task] = {}
            try:
                futures.update((pool.submit(self._trial, task, threads), task) for task in tasks)
                for future in as_completed(futures):
                    self.done[futures[future]] = future.result()
                    if finished is not None:
                        finished(self.results())
            except BaseException:
                self.meter.stop()
                pool.shutdown(cancel_futures=True)
                self._take_finished(futures)
                raise

    def results(self) -> list[Result]:
        """Return the results of what is done, by ranker."""
        return [
            Result(
                self.dataset.name,
                str(ranker),
                self.config,
                self.seed,
                tuple(self.done[task] for task in sorted(self.done) if task[0] == index),
            )
            for index, ranker in enumerate(self.rankers)
        ]

    def _trial(self, task: Task, threads: int) -> TrialResult:
        index, trial = task
        ranker = self.rankers[index]
        result = run_trial(
            self.dataset,
            ranker,
            self.config,
            self.seed,
            trial,
            threads=threads,
            progress=self.meter.tick,
        )
        if self.store is not None:
            self.store.save(ranker, trial, result)
        return result

    def _take_finished(self, futures: dict[Future[TrialResult], Task]) -> None:
        for future, task in futures.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                self.done[task] = future.result()


class _Meter:
    """Counts the model updates of all trials, and ends trials when told to."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._stopping = False
        self._done = self._total = 0

    def begin(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        if self._progress is not None:
            self._progress(done, total)

    def tick(self, done: int, total: int) -> None:
        """Count one more update of some trial."""
        if self._stopping:
            raise Stopped
        with self._lock:
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._total)

    def stop(self) -> None:
        """End every trial at its next update."""
        self._stopping = True


def _check(dataset: Dataset, trials: int, jobs: int) -> None:
    if trials < 1 or jobs < 1:
        raise ParameterError("trials and jobs must be 1 or more")
    if len(dataset.queries_in("test")) == 0:
        raise DataError(
            f"{dataset.name!r} has no test queries to measure on",
            remedy="Preparation keeps those with more than 5 candidates and a relevant one.",
        )
