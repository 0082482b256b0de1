"""The one runner: each run once, the same whatever the jobs, and on where it stopped."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ebrank.data.dataset import Dataset
from ebrank.experiments import catalog, choice
from ebrank.experiments.runner import Order, Report, all_runs, carry_out
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import simulate
from ebrank.simulation.parallel import Interrupted

SHORT = SimulationConfig(sessions=120, updates=2)
GIVEN = choice.read_given(
    ["ucbrank:epsilon=0.01", "ebrank:epsilon=30", "ebrank:estimator=exposure,epsilon=20"]
)
SOME = Order(catalog.selected("table2,time,ablation"), SHORT, seed=3, trials=2, given=GIVEN)


def files(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_every_run_is_made_once_and_is_a_simulation(dataset: Dataset, tmp_path: Path) -> None:
    report = carry_out(SOME, dataset, tmp_path)
    runs = all_runs(SOME.experiments, report.setup)
    assert len(runs) == len(set(runs)) == len(report.results)
    named = sum(len(one.runs(report.setup)) for one in SOME.experiments)
    assert named > len(runs), "experiments share runs"
    assert len(files(tmp_path)) == 2 * len(runs)
    for run in (report.setup.run("ebrank"), report.setup.run("pdgd:features=concate")):
        alone = simulate(dataset, run.ranker, run.config, seed=3, trials=2)
        np.testing.assert_array_equal(report.results[run].warm_ndcg, alone.warm_ndcg)


def test_what_is_given_is_not_tuned(dataset: Dataset, tmp_path: Path) -> None:
    setup = carry_out(SOME, dataset, tmp_path).setup
    assert [record.seed for record in setup.tuning] == [None] * 3
    assert {key: setup.chosen[key, 1.0] for key in GIVEN} == GIVEN


def test_progress_grows_to_its_total_and_says_what_runs(dataset: Dataset, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    order = Order(catalog.selected("entering"), SHORT, seed=3, trials=1, given=GIVEN)
    carry_out(order, dataset, tmp_path, watch=lambda *what: told.append(what))
    done = [each for _, each, _ in told]
    assert done == sorted(done)
    assert done[-1] == told[-1][2]
    assert "mq2007-like×0.02: running, η = 0.1" in {what for what, _, _ in told}


def test_tuning_is_part_of_the_work_that_is_foreseen(dataset: Dataset, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    some = {key: GIVEN[key] for key in ("ebrank", "ebrank:estimator=exposure")}
    order = Order(catalog.selected("table2"), SHORT, seed=3, trials=1, given=some)
    carry_out(order, dataset, tmp_path, watch=lambda *what: told.append(what))
    tuning = [each for each in told if "tuning ucbrank" in each[0]]
    assert 0 < tuning[-1][1] < tuning[-1][2]
    assert told[-1][1] == told[-1][2]


@pytest.mark.slow
def test_what_is_found_finished_is_no_progress(dataset: Dataset, tmp_path: Path) -> None:
    def watched(trials: int, folder: str) -> list[tuple[str, int, int]]:
        told: list[tuple[str, int, int]] = []
        order = Order(catalog.selected("table3,entering"), SHORT, 3, trials, GIVEN)
        carry_out(order, dataset, tmp_path / folder, watch=lambda *what: told.append(what))
        return told

    one = watched(1, "kept")
    assert watched(1, "kept")[-1][1:] == (0, 0), "nothing was left to do"
    second, both = watched(2, "kept"), watched(2, "fresh")
    assert second[0][1] == 0
    assert second[-1][1:] == one[-1][1:], "only the second trial's work"
    assert both[-1][1:] == tuple(2 * work for work in one[-1][1:])
    steps = {after[1] - before[1] for before, after in pairwise(second)}
    assert steps <= {after[1] - before[1] for before, after in pairwise(both)}, "a leap"


def test_a_stop_keeps_what_is_finished(dataset: Dataset, tmp_path: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        carry_out(SOME, dataset, tmp_path / "stopped", watch=stop)
    kept = files(tmp_path / "stopped")
    assert len(kept) > 10
    resumed = carry_out(SOME, dataset, tmp_path / "stopped", jobs=2)
    fresh = carry_out(SOME, dataset, tmp_path / "fresh")
    assert kept.items() <= files(tmp_path / "stopped").items(), "run again"
    assert resumed.outcomes == fresh.outcomes


def test_every_experiment_has_an_outcome_with_something_to_show(report: Report) -> None:
    assert list(report.outcomes) == list(catalog.EXPERIMENTS)
    names = []
    for name, outcome in report.outcomes.items():
        assert outcome.tables or outcome.figures, name
        names += [("table", table.name) for table in outcome.tables]
        names += [("figure", figure.name) for figure in outcome.figures]
    assert len(names) == len(set(names)), "two files of one name"
