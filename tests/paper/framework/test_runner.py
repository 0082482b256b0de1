"""The one runner: each run once, the same whatever the jobs, and on where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from ebrank.lab.data.dataset import Dataset
from ebrank.lab.evaluation.significance import query_differences
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import simulate
from ebrank.lab.simulation.result import Result
from ebrank.paper import exhibits
from ebrank.paper.framework import tuning
from ebrank.paper.framework.folds import in_fold
from ebrank.paper.framework.runner import FinishedDataset, ReproductionPlan, all_runs, slimmed
from tests.paper.made import result, run_plan, with_trials

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
    """Some exhibits, really run, and the folder of their trials."""
    folder = tmp_path_factory.mktemp("some")
    return run_plan(SOME, dataset, folder), folder


@pytest.mark.slow
def test_every_run_is_made_once_and_is_a_simulation(dataset: Dataset, some: Ran) -> None:
    finished, folder = some
    runs = all_runs(SOME.exhibits, finished.setup)
    assert len(runs) == len(set(runs)) == len(finished.results)
    named = sum(len(first.runs(finished.setup)) for first in SOME.exhibits)
    assert named > len(runs), "exhibits share runs"
    assert len(files(folder)) == 2 * len(runs)
    for run in (finished.setup.run("ebrank"), finished.setup.run("pdgd:features=concate")):
        alone = simulate(dataset, in_fold(run.ranker, 0), run.config, seed=3, trials=2)
        np.testing.assert_array_equal(finished.results[run].warm_ndcg, alone.warm_ndcg)


@pytest.mark.slow
def test_given_rankers_are_not_tuned(some: Ran) -> None:
    setup = some[0].setup
    assert [record.seed for record in setup.tuning] == [None] * 3
    assert {key: setup.chosen[key, setup.config] for key in GIVEN} == GIVEN


def watched(
    dataset: Dataset, folder: Path, only: str, trials: int = 1, tuned: str = ""
) -> list[tuple[str, int, int]]:
    """Return the progress of a plan in which one ranker is tuned, or none."""
    calls: list[tuple[str, int, int]] = []
    given = {key: ranker for key, ranker in GIVEN.items() if key != tuned}
    plan = ReproductionPlan(exhibits.selected(only), SHORT, 3, trials, given)
    run_plan(plan, dataset, folder, watch=lambda *now: calls.append((now[2], *now[:2])))
    return calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("only", "tuned", "said"),
    [("entering", "", "running, η = 0.1"), ("table2", "ucbrank", "tuning ucbrank")],
)
def test_progress_grows_to_its_total_and_says_what_runs(
    dataset: Dataset, tmp_path: Path, only: str, tuned: str, said: str
) -> None:
    calls = watched(dataset, tmp_path, only, tuned=tuned)
    assert calls[-1][1] == calls[-1][2]
    during = [each for each in calls if each[0] == f"mq2007-like×0.02: {said}"]
    assert 0 < during[-1][1] < during[-1][2]


def test_every_exhibit_has_something_to_show(finished: FinishedDataset) -> None:
    assert list(finished.displays) == [exhibit.name for exhibit in exhibits.selected()]
    names = []
    for name, shown in finished.displays.items():
        assert shown.tables or shown.figures, name
        names += [("table", table.name) for table in shown.tables]
        names += [("figure", figure.name) for figure in shown.figures]
    assert len(names) == len(set(names)), "two files of one name"


def long(seed: int) -> Result:
    """Return a result whose trials were asked the same queries for a long time."""
    rng = np.random.default_rng(seed)
    asked = [np.random.default_rng(number).integers(0, 40, 20_000) for number in range(2)]
    return with_trials(
        result("bm25", [(0.5, 0.5, 0.5)] * 2),
        test_queries=asked,
        test_ndcg=[rng.random(20_000) for _ in range(2)],
        cum_by_query=[rng.random(40) for _ in range(2)],
    )


def test_slimmed_results_compare_the_same_and_keep_queries_once() -> None:
    first, second = long(1), long(2)
    a, b = slimmed([first, second])
    whole = query_differences(first, second, "cum_ndcg")
    np.testing.assert_array_equal(query_differences(a, b, "cum_ndcg"), whole)
    assert len(a.trials[0].test_ndcg) == 0
    assert a.trials[0].test_queries is b.trials[0].test_queries
    other = result("bm25", [(0.5, 0.5, 0.5)] * 2)
    assert slimmed([a, other])[1].trials[0].test_queries is other.trials[0].test_queries
