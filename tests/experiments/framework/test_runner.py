"""The one runner: each run once, the same whatever the jobs, and on where it stopped."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from ebrank.data.dataset import Dataset
from ebrank.evaluation.significance import query_differences
from ebrank.experiments import exhibits
from ebrank.experiments.framework import tuning
from ebrank.experiments.framework.folds import in_fold
from ebrank.experiments.framework.runner import (
    FinishedDataset,
    ReproductionPlan,
    all_runs,
    run_plan,
    slimmed,
)
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import simulate
from ebrank.simulation.parallel import Interrupted
from ebrank.simulation.result import Result
from tests.experiments.made import result

SHORT = SimulationConfig(sessions=120, updates=2)
GIVEN = tuning.read_given(
    ["ucbrank:epsilon=0.01", "ebrank:epsilon=30", "ebrank:estimator=exposure,epsilon=20"]
)
Ran: TypeAlias = tuple[FinishedDataset, Path]
SOME = ReproductionPlan(
    exhibits.selected("table2,time,ablation"), SHORT, seed=3, trials=2, given=GIVEN
)


def files(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


@pytest.fixture(scope="module")
def some(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Some experiments, really run, and the folder of their trials."""
    folder = tmp_path_factory.mktemp("some")
    return run_plan(SOME, dataset, folder), folder


@pytest.mark.slow
def test_every_run_is_made_once_and_is_a_simulation(dataset: Dataset, some: Ran) -> None:
    finished, folder = some
    runs = all_runs(SOME.experiments, finished.setup)
    assert len(runs) == len(set(runs)) == len(finished.results)
    named = sum(len(first.runs(finished.setup)) for first in SOME.experiments)
    assert named > len(runs), "experiments share runs"
    assert len(files(folder)) == 2 * len(runs)
    for run in (finished.setup.run("ebrank"), finished.setup.run("pdgd:features=concate")):
        alone = simulate(dataset, in_fold(run.ranker, 0), run.config, seed=3, trials=2)
        np.testing.assert_array_equal(finished.results[run].warm_ndcg, alone.warm_ndcg)


@pytest.mark.slow
def test_given_rankers_are_not_tuned(some: Ran) -> None:
    setup = some[0].setup
    assert [record.seed for record in setup.tuning] == [None] * 3
    assert {key: setup.chosen[key, setup.config] for key in GIVEN} == GIVEN


@pytest.mark.slow
def test_progress_grows_to_its_total_and_says_what_runs(dataset: Dataset, tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    plan = ReproductionPlan(exhibits.selected("entering"), SHORT, seed=3, trials=1, given=GIVEN)
    run_plan(plan, dataset, tmp_path, watch=lambda *what: calls.append(what))
    done = [each for _, each, _ in calls]
    assert done == sorted(done)
    assert done[-1] == calls[-1][2]
    assert "mq2007-like×0.02: running, η = 0.1" in {what for what, _, _ in calls}


@pytest.mark.slow
def test_tuning_is_part_of_the_work_that_is_foreseen(dataset: Dataset, tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    some = {key: GIVEN[key] for key in ("ebrank", "ebrank:estimator=exposure")}
    plan = ReproductionPlan(exhibits.selected("table2"), SHORT, seed=3, trials=1, given=some)
    run_plan(plan, dataset, tmp_path, watch=lambda *what: calls.append(what))
    tuning = [each for each in calls if "tuning ucbrank" in each[0]]
    assert 0 < tuning[-1][1] < tuning[-1][2]
    assert calls[-1][1] == calls[-1][2]


@pytest.mark.slow
def test_stored_trials_do_not_count_as_progress(dataset: Dataset, tmp_path: Path) -> None:
    def watched(trials: int, folder: str) -> list[tuple[str, int, int]]:
        calls: list[tuple[str, int, int]] = []
        plan = ReproductionPlan(exhibits.selected("table3"), SHORT, 3, trials, GIVEN)
        run_plan(plan, dataset, tmp_path / folder, watch=lambda *what: calls.append(what))
        return calls

    first = watched(1, "kept")
    assert watched(1, "kept")[-1][1:] == (0, 0), "nothing was left to do"
    second, both = watched(2, "kept"), watched(2, "fresh")
    assert second[0][1] == 0
    assert second[-1][1:] == first[-1][1:], "only the second trial's work"
    assert both[-1][1:] == tuple(2 * work for work in first[-1][1:])
    steps = {after[1] - before[1] for before, after in pairwise(second)}
    assert steps <= {after[1] - before[1] for before, after in pairwise(both)}, "a leap"


@pytest.mark.slow
def test_a_stop_keeps_what_is_finished(dataset: Dataset, tmp_path: Path, some: Ran) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        run_plan(SOME, dataset, tmp_path, watch=stop)
    kept = files(tmp_path)
    assert len(kept) > 10
    resumed = run_plan(SOME, dataset, tmp_path, jobs=2)
    assert kept.items() <= files(tmp_path).items(), "run again"
    assert resumed.outcomes == some[0].outcomes


def test_every_experiment_has_an_outcome_with_something_to_show(finished: FinishedDataset) -> None:
    assert list(finished.outcomes) == [experiment.name for experiment in exhibits.selected()]
    names = []
    for name, outcome in finished.outcomes.items():
        assert outcome.tables or outcome.figures, name
        names += [("table", table.name) for table in outcome.tables]
        names += [("figure", figure.name) for figure in outcome.figures]
    assert len(names) == len(set(names)), "two files of one name"


def long(seed: int) -> Result:
    """Return a result whose trials were asked the same queries for a long time."""
    rng = np.random.default_rng(seed)
    made = result("bm25", [(0.5, 0.5, 0.5)] * 2)
    trials = tuple(
        replace(
            trial,
            test_queries=np.random.default_rng(number).integers(0, 40, 20_000),
            test_ndcg=rng.random(20_000),
            cum_by_query=rng.random(40),
        )
        for number, trial in enumerate(made.trials)
    )
    return replace(made, trials=trials)


def test_comparisons_see_no_difference() -> None:
    a, b = long(1), long(2)
    slim = slimmed([a, b])
    whole = query_differences(a, b, "cum_ndcg")
    np.testing.assert_array_equal(query_differences(slim[0], slim[1], "cum_ndcg"), whole)
    assert len(slim[0].trials[0].test_ndcg) == 0


def test_queries_are_kept_once_and_only_if_they_are_the_same() -> None:
    a, b = slimmed([long(1), long(2)])
    assert a.trials[0].test_queries is b.trials[0].test_queries
    other = result("bm25", [(0.5, 0.5, 0.5)] * 2)
    assert slimmed([a, other])[1].trials[0].test_queries is other.trials[0].test_queries
