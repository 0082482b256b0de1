"""Trials side by side: kernels release the GIL, so threads over trials use all cores.

Each trial is a pure function of its arguments, so the outcome does not depend on how many run in
parallel, or where: `cluster.Workers` run them on other machines. Stopping keeps finished trials: in
the store, if there is one, and in `Interrupted`.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ebrank.errors import ParameterError
from ebrank.kernels.threads import available_threads
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import Progress, check_test_queries, compile_for, run_trial
from ebrank.lab.simulation.result import Result, TrialResult, about_config
from ebrank.lab.simulation.storage import StoredTrials

Task = tuple[int, int]
"""Which trial of which ranker."""
Tick = Callable[[Task, int], None]
"""Called with a task and how many of its updates are done."""


class PlannedTrial(NamedTuple):
    """Everything that decides a trial's outcome."""

    dataset: Dataset
    ranker: Ranker
    config: SimulationConfig
    seed: int
    trial: int


class TrialPool(Protocol):
    """Where trials run: threads of this process, or the workers of a cluster."""

    def run(self, trials: Mapping[Task, PlannedTrial]) -> Iterator[tuple[Task, TrialResult]]:
        """Yield the results of some trials as they finish."""
        ...

    def stop(self) -> Iterator[tuple[Task, TrialResult]]:
        """Cancel all trials; yield finished results, even if they were yielded before."""
        ...


class Interrupted(KeyboardInterrupt):
    """A run that was stopped, with the results of the finished trials."""

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
    pool: TrialPool | None = None,
    store: StoredTrials | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Return the results of some rankers on a dataset, in their order.

    Args:
        dataset: a prepared dataset.
        rankers: all meet the same users, query by query.
        config: the experiment; the paper's by default.
        seed: trial i's draws come from a hash of (seed, i).
        trials: of each ranker.
        jobs: trials that run in parallel; they share the cores. Never changes a result.
        pool: where they run instead, such as on a cluster.
        store: where finished trials are kept, and looked for first.
        progress: called with the model updates done and to be done.

    Raises:
        Interrupted: on Ctrl-C, with the results of finished trials.
    """
    config = config or SimulationConfig()
    if trials < 1 or jobs < 1:
        raise ParameterError("trials and jobs must be 1 or more")
    check_test_queries(dataset)
    config.session_count(dataset)  # raises before any work is done
    if store is not None and (store.dataset, store.config, store.seed) != (dataset, config, seed):
        raise ParameterError("the store is for another dataset, config or seed")
    batch = _Batch(dataset, rankers, config, seed, store, _Meter(progress, config.updates))
    tasks = [(index, trial) for trial in range(trials) for index in range(len(rankers))]
    try:
        left = batch.take_stored(tasks)
        batch.meter.begin(tasks, batch.done)
        if left:
            batch.run(left, pool or _Threads(min(jobs, len(left)), batch.meter.tick))
        return batch.results()
    except KeyboardInterrupt:
        raise Interrupted(batch.results()) from None


@dataclass
class _Batch:
    """Trials to run, and those done."""

    dataset: Dataset
    rankers: Sequence[Ranker]
    config: SimulationConfig
    seed: int
    store: StoredTrials | None
    meter: _Meter
    done: dict[Task, TrialResult] = field(default_factory=dict)

    def take_stored(self, tasks: Sequence[Task]) -> list[Task]:
        """Take the results in the store; return the tasks that are left."""
        for index, ranker in enumerate(self.rankers):
            if self.store is not None:
                trials = (trial for task_ranker, trial in tasks if task_ranker == index)
                stored = self.store.load(ranker, trials)
                self.done |= {(index, trial): result for trial, result in stored.items()}
        return [task for task in tasks if task not in self.done]

    def run(self, tasks: Sequence[Task], pool: TrialPool) -> None:
        """Run the tasks in a pool."""
        planned = {
            task: PlannedTrial(self.dataset, self.rankers[task[0]], self.config, self.seed, task[1])
            for task in tasks
        }
        try:
            for task, result in pool.run(planned):
                self._take(task, result)
        except BaseException:
            for task, result in pool.stop():
                with contextlib.suppress(OSError):  # results are still in memory
                    self._take(task, result)
            raise

    def results(self) -> list[Result]:
        """Return the results so far, by ranker."""
        return [
            Result(
                self.dataset.name,
                str(ranker),
                about_config(self.config),
                self.seed,
                tuple(self.done[task] for task in sorted(self.done) if task[0] == index),
            )
            for index, ranker in enumerate(self.rankers)
        ]

    def _take(self, task: Task, result: TrialResult) -> None:
        """Keep a result, unless that was done before."""
        if task in self.done:
            return
        self.meter.tick(task, self.config.updates)  # even those not reported yet
        if self.store is not None:
            index, trial = task
            self.store.save(self.rankers[index], trial, result)
        self.done[task] = result


class _Threads:
    """Threads of this process, which share its cores."""

    def __init__(self, jobs: int, tick: Tick) -> None:
        self._tick = tick
        self._threads = max(1, available_threads() // jobs)
        self._executor = ThreadPoolExecutor(jobs)
        self._futures: dict[Future[TrialResult], Task] = {}
        self._stopping = False

    def run(self, trials: Mapping[Task, PlannedTrial]) -> Iterator[tuple[Task, TrialResult]]:
        """Compile what the trials need, then run them, `jobs` at a time."""
        first = next(iter(trials.values()))
        rankers = dict.fromkeys(planned.ranker for planned in trials.values())
        compile_for(first.dataset, rankers, first.config)
        for task, planned in trials.items():
            self._futures[self._executor.submit(self._trial, task, planned)] = task
        for future in as_completed(self._futures):
            yield self._futures[future], future.result()
        self._executor.shutdown()

    def stop(self) -> Iterator[tuple[Task, TrialResult]]:
        """End every trial at its next update; yield those that ended well."""
        self._stopping = True
        self._executor.shutdown(cancel_futures=True)
        for future, task in self._futures.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                yield task, future.result()

    def _trial(self, task: Task, planned: PlannedTrial) -> TrialResult:
        def progress(done: int, total: int) -> None:
            if self._stopping:
                raise Stopped
            self._tick(task, done)

        return run_trial(*planned, threads=self._threads, progress=progress)


class _Meter:
    """Counts the model updates of all trials."""

    def __init__(self, progress: Progress | None, updates: int) -> None:
        self._progress = progress or (lambda done, total: None)
        self._updates = updates
        self._lock = threading.Lock()
        self._done: Counter[Task] = Counter()
        self._total = 0

    def begin(self, tasks: Collection[Task], stored: Iterable[Task]) -> None:
        self._done.update(dict.fromkeys(stored, self._updates))
        self._total = len(tasks) * self._updates
        self._progress(self._done.total(), self._total)

    def tick(self, task: Task, done: int) -> None:
        """Record how many updates of a trial are done."""
        with self._lock:
            if self._done[task] not in (done, self._updates):
                self._done[task] = done
                self._progress(self._done.total(), self._total)
