"""The one runner: chooses every ε, makes each run once, then asks each exhibit for its display.

The result is a pure function of the dataset, the config, the seed and the number of trials.
Finished trials are kept in a folder and reused, so stopping loses only the trials under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ebrank.errors import ParameterError
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation import parallel
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result, TrialResult
from ebrank.lab.simulation.stamps import fingerprint
from ebrank.lab.simulation.storage import StoredTrials
from ebrank.lab.simulation.tuning import TuningRecord, check_validation, tuning_seed
from ebrank.paper.framework import tuning
from ebrank.paper.framework.display import Display
from ebrank.paper.framework.exhibit import (
    Exhibit,
    Need,
    Results,
    Run,
    Setup,
    pooled_setup,
    world_of,
)
from ebrank.paper.framework.folds import Fold, in_fold, pooled

Watch: TypeAlias = Callable[[int, int, str], None]
"""Called with how many thousandths of all stages are done, how many there are, and what runs."""


@dataclass(frozen=True)
class ReproductionPlan:
    """What to run, on any dataset.

    Attributes:
        exhibits: which tables and figures.
        config: the simulation.
        seed: of all trials.
        trials: of each run.
        given: rankers that are given instead of tuned, by the entrant's key.
        also: the user's own rankers, each with a row in Table 2.
        tune: the same, but first tuned on validation queries.
    """

    exhibits: tuple[Exhibit, ...]
    config: SimulationConfig = field(default_factory=SimulationConfig)
    seed: int = 0
    trials: int = 5
    given: Mapping[str, Ranker] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    tune: tuple[str, ...] = ()


@dataclass(frozen=True)
class FinishedDataset:
    """What a plan found on one dataset.

    Attributes:
        setup: the dataset, and the rankers with their ε.
        results: of all runs.
        displays: by the exhibit's name.
        fingerprint: a hash of its content; those of all folds, joined.
    """

    setup: Setup
    results: Results
    displays: dict[str, Display]
    fingerprint: str


def run_folds(
    plan: ReproductionPlan,
    folds: Sequence[Fold],
    opened: Callable[[int], tuple[Dataset, parallel.TrialPool | None]],
    folder: Path,
    *,
    jobs: int = 1,
    watch: Watch | None = None,
) -> FinishedDataset:
    """Run a plan on a dataset, or on each of its folds, whose results are pooled.

    Every ε is chosen in each fold separately.

    Args:
        plan: what to run.
        folds: what there is to say of each fold; () for a dataset that is not pooled.
        opened: returns the fold at a place, and where its trials run; one is open at a time, and
            the first stays open.
        folder: where trials are kept, the same as those of single folds.
        jobs: trials to run at a time.
        watch: called with the progress.

    Raises:
        parallel.Interrupted: on Ctrl-C; finished trials are in the folder.
    """
    blank: Setup | None = None
    setups, by_fold, fingerprints = [], [], []
    for place in range(len(folds) or 1):
        dataset, pool = opened(place)
        if blank is None:
            blank = Setup(_as_all(dataset, folds), plan.config, plan.seed, plan.trials, plan.also)
        name = folds[place].name if folds else dataset.name
        work = _Work(plan, blank, dataset, name, folder, jobs, pool, watch)
        setups.append(work.tuned())
        by_fold.append(work.results(setups[-1]))
        fingerprints.append(fingerprint(dataset))
    setup, results = setups[0], by_fold[0]
    if folds:
        setup = pooled_setup(setups, folds)
        results = _pooled(plan, setup, by_fold)
    displays = {each.name: each.display_of(setup, results) for each in plan.exhibits}
    return FinishedDataset(setup, results, displays, "+".join(fingerprints))


def _as_all(first: Dataset, folds: Sequence[Fold]) -> Dataset:
    """Return the first fold; if another one is not as published, neither are they together."""
    if first.origin is None or not folds:
        return first
    differences = tuple(each for fold in folds for each in fold.differences)
    origin = replace(first.origin, differences=differences)
    return replace(first, origin=origin, check_values=False)


def _pooled(plan: ReproductionPlan, setup: Setup, by_fold: Sequence[Results]) -> dict[Run, Result]:
    """Return the results of all folds as one."""
    whole: dict[Run, Result] = {}
    for config, runs in _by_config(all_runs(plan.exhibits, setup)).items():
        each = [
            pooled(
                [own[Run(in_fold(run.ranker, place), config)] for place, own in enumerate(by_fold)],
                str(run.ranker),
            )
            for run in runs
        ]
        whole.update(zip(runs, slimmed(each), strict=True))
    return whole


def all_runs(exhibits: Iterable[Exhibit], setup: Setup) -> list[Run]:
    """Return the runs that some exhibits need, each once."""
    needed = (run for exhibit in exhibits for run in exhibit.runs(setup).values())
    return list(dict.fromkeys(needed))


def _by_config(runs: Iterable[Run]) -> dict[SimulationConfig, list[Run]]:
    by_config: dict[SimulationConfig, list[Run]] = {}
    for run in runs:
        by_config.setdefault(run.config, []).append(run)
    return by_config


@dataclass
class _Work:
    """A plan being run on one dataset or fold, and its progress."""

    plan: ReproductionPlan
    setup: Setup
    dataset: Dataset
    name: str
    folder: Path
    jobs: int
    pool: parallel.TrialPool | None
    watch: Watch | None
    stage: int = 0

    def __post_init__(self) -> None:
        self.needs = tuning.needs(self.plan.exhibits, self.setup)
        untuned = replace(self.setup, chosen=self.needs)  # as many configs as with chosen values
        running = _by_config(all_runs(self.plan.exhibits, untuned))
        tuned = [need for need in self.needs if need[0] not in self.plan.given]
        self.stages = len(tuned) + len(self.plan.tune) + len(running)

    def tuned(self) -> Setup:
        """Return the setup with every ε chosen."""
        plan = self.plan
        chosen: dict[Need, Ranker] = {}
        records: list[TuningRecord] = []
        for need in self.needs:
            if need[0] in plan.given:
                chosen[need], own = tuning.take_given(need, plan.given, plan.config)
            else:
                chosen[need], own = self._tune(need)
            records += own
        also = list(plan.also)
        for text in plan.tune:
            name = f"{text}, tuned"  # what was chosen may differ between datasets
            chosen[name, plan.config], own = self._tune((text, plan.config))
            also.append(name)
            records += own
        return replace(self.setup, chosen=chosen, tuning=tuple(records), also=tuple(also))

    def results(self, setup: Setup) -> dict[Run, Result]:
        """Run the trials that the folder lacks, and return all results."""
        needed = all_runs(self.plan.exhibits, setup)
        results: dict[Run, Result] = {}
        for config, runs in _by_config(needed).items():
            rankers = [in_fold(run.ranker, 0) for run in runs]  # plain: the setup is of one fold
            finished = self._run("running", rankers, config, setup.seed, setup.trials)
            if any(result.unserved for result in finished):
                raise ParameterError(
                    f"no test query of {self.name} was served in one of the trials; "
                    "set more --sessions"
                )
            results.update(zip(runs, slimmed(finished), strict=True))
            self.stage += 1
        return results

    def _tune(self, need: Need) -> tuple[Ranker, list[TuningRecord]]:
        plan, (key, config) = self.plan, need
        check_validation(self.dataset)
        seed, trials = tuning_seed(plan.seed), tuning.tuning_trials(plan.trials, key)

        def run(rankers: Sequence[Ranker]) -> list[Result]:
            return self._run(f"tuning {key}", rankers, config, seed, trials)

        tuned = tuning.tune(need, plan.config, plan.seed, run)
        self.stage += 1
        return tuned

    def _run(
        self,
        what: str,
        rankers: Sequence[Ranker],
        config: SimulationConfig,
        seed: int,
        trials: int,
    ) -> list[Result]:
        """Run some rankers, or take their trials from the folder."""
        about, stage = _about(config, self.plan.config), self.stage

        def report(done: int, total: int) -> None:
            if self.watch is not None:
                part = 1000 * done // max(total, 1)
                self.watch(1000 * stage + part, 1000 * self.stages, f"{self.name}: {what}{about}")

        return parallel.run(
            self.dataset,
            rankers,
            config,
            seed,
            trials=trials,
            jobs=self.jobs,
            pool=self.pool,
            store=StoredTrials(self.folder, self.dataset, config, seed),
            progress=report,
        )


def _about(config: SimulationConfig, usual: SimulationConfig) -> str:
    """Return how a config differs from the usual one."""
    same = config.entering_probability == usual.entering_probability
    eta = "" if same else f"η = {config.entering_probability:g}"
    return "".join(f", {text}" for text in (eta, world_of(config, usual)) if text)


def slimmed(results: Sequence[Result]) -> list[Result]:
    """Return results of rankers that met the same queries, small enough to keep hundreds of them.

    Single lists are dropped: comparisons read only what each query adds. The queries are the same
    for all rankers, and are kept once.
    """
    return [
        replace(result, trials=tuple(map(_slim, result.trials, results[0].trials)))
        for result in results
    ]


def _slim(trial: TrialResult, first: TrialResult) -> TrialResult:
    same = np.array_equal(trial.test_queries, first.test_queries)
    return replace(
        trial,
        test_queries=first.test_queries if same else trial.test_queries,
        test_ndcg=np.zeros(0),
        cold_lists=trial.cold_lists[:, :0].copy(),  # a view would keep the rest alive
        warm_lists=trial.warm_lists[:, :0].copy(),
    )
