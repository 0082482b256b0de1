"""The one runner: chooses every ε, makes each run once, then lets the experiments speak.

What comes of it is a pure function of the dataset, the config, the seed and the number of trials.
Finished trials are kept in a folder and found there again: stopping loses only what is under way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from ebrank.data.dataset import Dataset
from ebrank.experiments import choice
from ebrank.experiments.keeping import kept
from ebrank.experiments.outcome import Outcome
from ebrank.experiments.run import Experiment, Results, Run, Setup, TuningRecord
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker
from ebrank.simulation import parallel
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.result import Result
from ebrank.simulation.storage import Store

Watch: TypeAlias = Callable[[str, int, int], None]
"""Told what runs, how much is done, and how much there is to do.

Trials that were found finished count for neither: they took no time, and whoever reckons from them
how long the rest will take would promise too much.
"""


@dataclass(frozen=True)
class Order:
    """What is to be done, on any dataset.

    Attributes:
        experiments: which tables and figures.
        config: the simulation.
        seed: of all trials.
        trials: of each run.
        given: rankers that take the place of tuning, by the entrant's key.
    """

    experiments: tuple[Experiment, ...]
    config: SimulationConfig = field(default_factory=SimulationConfig)
    seed: int = 0
    trials: int = 5
    given: Mapping[str, Ranker] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """What an order came to on one dataset.

    Attributes:
        setup: the dataset, and the rankers with their ε.
        results: of all runs.
        outcomes: by the experiment's name.
        seconds: from first to last, by what was done; nothing else here depends on time.
    """

    setup: Setup
    results: Results
    outcomes: dict[str, Outcome]
    seconds: dict[str, float]


def carry_out(
    order: Order,
    dataset: Dataset,
    folder: Path,
    *,
    jobs: int = 1,
    watch: Watch | None = None,
) -> Report:
    """Return what the experiments come to on a dataset, keeping trials in a folder.

    Raises:
        parallel.Interrupted: on Ctrl-C; what is finished is in the folder.
    """
    clock = _Clock()
    work = _Work(order, dataset, folder, jobs, watch)
    setup = work.tuned()
    clock.lap("tuning")
    results = work.results(setup)
    clock.lap("running")
    outcomes = {}
    for experiment in order.experiments:
        outcomes[experiment.name] = experiment.outcome(setup, results)
        clock.lap(experiment.name)
    return Report(setup, results, outcomes, clock.laps)


def all_runs(experiments: Iterable[Experiment], setup: Setup) -> list[Run]:
    """Return the runs that some experiments need, each once."""
    return list(dict.fromkeys(run for experiment in experiments for run in experiment.runs(setup)))


class _Clock:
    """Seconds between laps."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now


class _Work:
    """An order on its way, and how far it is."""

    def __init__(
        self, order: Order, dataset: Dataset, folder: Path, jobs: int, watch: Watch | None
    ) -> None:
        self.order = order
        self.dataset = dataset
        self.folder = folder
        self.jobs = jobs
        self.watch = watch
        self.done = 0
        self.found = 0
        self.needs = choice.needs(order.experiments, order.config)
        self.total = self._tuning_work() + self._running_work(self._plan())

    def tuned(self) -> Setup:
        """Return the setup with every ε chosen."""
        order = self.order
        setup = Setup(self.dataset, order.config, order.seed, order.trials)
        chosen, records = {}, []
        for need in self.needs:
            if need[0] in order.given:
                ranker, record = choice.take(need, order.given)
            else:
                ranker, record = self._tune(need)
            chosen[need] = ranker
            records.append(record)
        return replace(setup, chosen=chosen, tuning=tuple(records))

    def results(self, setup: Setup) -> dict[Run, Result]:
        """Run whatever is not in the folder yet."""
        by_config: dict[SimulationConfig, list[Run]] = {}
        for run in all_runs(self.order.experiments, setup):
            by_config.setdefault(run.config, []).append(run)
        self.total = self.done + self._running_work(all_runs(self.order.experiments, setup))
        results: dict[Run, Result] = {}
        for config, runs in by_config.items():
            done = parallel.run(
                self.dataset,
                [run.ranker for run in runs],
                config,
                setup.seed,
                trials=setup.trials,
                jobs=self.jobs,
                store=Store(self.folder, self.dataset, config, setup.seed),
                progress=self._progress(f"running{_about(config, setup.config)}", config),
            )
            self._finish(config, len(runs) * setup.trials)
            results.update(zip(runs, kept(done), strict=True))
        return results

    def _tune(self, need: choice.Need) -> tuple[Ranker, TuningRecord]:
        order = self.order
        config = replace(order.config, entering_probability=need[1])
        tuned = choice.tune(
            need,
            self.dataset,
            order.config,
            order.seed,
            trials=order.trials,
            jobs=self.jobs,
            folder=self.folder,
            progress=self._progress(f"tuning {need[0]}{_about(config, order.config)}", config),
        )
        self._finish(config, len(choice.grid_of(need[0])) * choice.tuning_trials(order.trials))
        return tuned

    def _plan(self) -> list[Run]:
        """Return about what will have to be run, before it is known with which ε."""
        chosen = {need: registry.parse(need[0]) for need in self.needs}
        order = self.order
        setup = Setup(self.dataset, order.config, order.seed, order.trials, chosen)
        return all_runs(order.experiments, setup)

    def _tuning_work(self) -> int:
        trials = choice.tuning_trials(self.order.trials)
        return sum(
            len(choice.grid_of(key))
            * trials
            * self._trial_work(replace(self.order.config, entering_probability=eta))
            for key, eta in self.needs
            if key not in self.order.given
        )

    def _running_work(self, runs: Sequence[Run]) -> int:
        return self.order.trials * sum(self._trial_work(run.config) for run in runs)

    def _trial_work(self, config: SimulationConfig) -> int:
        return self._update_work(config) * config.updates

    def _update_work(self, config: SimulationConfig) -> int:
        """Return about how much work lies between two updates: sessions, then every row's score."""
        return config.session_count(self.dataset) // config.updates + 2 * self.dataset.n_rows

    def _progress(self, what: str, config: SimulationConfig) -> Callable[[int, int], None]:
        """Return what hears of a batch's updates: first of all how many were found finished."""
        each = self._update_work(config)
        begun = False

        def tell(done: int, total: int) -> None:
            nonlocal begun
            if not begun:
                begun = True
                self.found = done * each
                self.total -= self.found
            if self.watch is not None:
                now = self.done + done * each - self.found
                self.watch(f"{self.dataset.name}: {what}", now, self.total)

        return tell

    def _finish(self, config: SimulationConfig, trials: int) -> None:
        self.done += trials * self._trial_work(config) - self.found
        self.found = 0


def _about(config: SimulationConfig, usual: SimulationConfig) -> str:
    """Return in what a config differs from the usual one."""
    if config.entering_probability != usual.entering_probability:
        return f", η = {config.entering_probability:g}"
    if config.believed is not None and config.believed != usual.believed:
        return f", believed severity {config.believed.severity:g}"
    return ""
