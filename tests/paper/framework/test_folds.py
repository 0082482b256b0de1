"""Folds pooled: every test query counts once, and every ε is chosen in its fold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ebrank
from ebrank.errors import ParameterError
from ebrank.lab.data.dataset import Dataset, Origin
from ebrank.lab.evaluation.significance import fisher_randomization, query_differences
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result, summary
from ebrank.paper import exhibits
from ebrank.paper.comparison import compared
from ebrank.paper.document import document
from ebrank.paper.framework import tuning
from ebrank.paper.framework.display import Table
from ebrank.paper.framework.entrants import EBRANK, entrant_of
from ebrank.paper.framework.folds import Fold, RankerByFold, in_fold, pooled
from ebrank.paper.framework.measures import (
    MEASURES,
    Measure,
    behavior_ratios,
    cells,
    mean_of,
)
from ebrank.paper.framework.runner import FinishedDataset, ReproductionPlan, run_folds
from tests.paper.made import QUERIES, result, run_plan, with_trials


def folds(ranker: str, levels: tuple[float, float], seed: int) -> list[Result]:
    """Return a ranker's results in two folds, the second with half of the queries."""
    sizes = zip(levels, (QUERIES, QUERIES // 2), strict=True)
    return [
        result(ranker, [(level,) * 3] * 3, noise=0.2, seed=seed + place, queries=queries)
        for place, (level, queries) in enumerate(sizes)
    ]


A, B = folds("ebrank", (0.8, 0.6), 1), folds("bm25", (0.7, 0.6), 20)


def test_figures_are_over_the_queries_of_all_folds() -> None:
    both = pooled(A)
    assert both.dataset == "made, 2 folds"
    for number, trial in enumerate(both.trials):
        own = [fold.trials[number] for fold in A]
        queries = np.concatenate([fold.cold_by_query for fold in own])
        assert len(queries) == QUERIES * 3 // 2
        assert trial.cold_ndcg[-1, 0] == pytest.approx(queries.mean())
        assert trial.cum_ndcg[-1] == pytest.approx(np.mean([fold.cum_ndcg[-1] for fold in own]))
        assert trial.cum_by_query.sum() == pytest.approx(trial.cum_ndcg[-1])
        assert trial.run_by_query.sum() == pytest.approx(trial.run_ndcg[-1])


def test_the_spread_is_over_training_sets() -> None:
    both = pooled(A)
    means = [float(fold.cold_ndcg.mean()) for fold in A]
    assert both.by_fold["cold_ndcg"].tolist() == means
    assert cells(both)[0].sd == pytest.approx(np.std(means, ddof=1))
    assert mean_of([both]).startswith("mean of the trials ± standard deviation of the folds")
    assert summary(both)["cold_ndcg"]["folds"] == means
    assert "folds" not in summary(A[0])["cold_ndcg"]
    assert cells(A[0])[0].sd == pytest.approx(A[0].cold_ndcg.std(ddof=1))


@pytest.mark.parametrize("measure", MEASURES)
def test_the_test_is_over_the_queries_of_all_folds(measure: Measure) -> None:
    a, b = pooled(A), pooled(B)
    pair = compared([a, b]).pairs[MEASURES.index(measure)]
    assert pair.difference == pytest.approx(measure.mean(a) - measure.mean(b))
    by_fold = [query_differences(x, y, measure.metric) for x, y in zip(A, B, strict=True)]
    assert pair.p_value == fisher_randomization(np.concatenate(by_fold))


def test_what_else_a_trial_has_is_that_of_all_folds() -> None:
    made = [
        with_trials(
            fold,
            wait_shown=[np.full(2 + place, place)] * 3,
            watched=[np.full(2 + place, 9)] * 3,
            weights=[[1.0] * (2 + place) + [4.0]] * 3,
            calibration=[np.full((place, 5), 0.5)] * 3,
        )
        for place, fold in enumerate(A)
    ]
    whole = pooled(made)
    trial = whole.trials[0]
    assert trial.wait_shown.tolist() == [0, 0, 1, 1, 1]
    assert len(trial.watched) == 5
    assert trial.calibration is not None
    assert trial.calibration.shape == (1, 5)
    assert len(trial.cold_lists) == len(trial.cold_by_query)
    np.testing.assert_allclose(
        behavior_ratios(whole), [[(4 / 6 + 4 / 7) / 2, (1 / 6 + 1 / 7) / 2]] * 3
    )


def test_one_fold_is_itself_and_only_one_ranker_is_pooled() -> None:
    alone = pooled(A[:1])
    for measure in MEASURES:
        np.testing.assert_allclose(measure.values(alone), measure.values(A[0]))
    with pytest.raises(ParameterError, match="the same ranker"):
        pooled([A[0], B[0]])


# --- all folds by the one runner ------------------------------------------------------------------

GIVEN = tuning.read_given(["ebrank:estimator=exposure,epsilon=20"])
PLAN = ReproductionPlan(
    exhibits.selected("table1,table3,ablation"),
    SimulationConfig(sessions=120, updates=2),
    seed=5,
    trials=1,
    given=GIVEN,
    tune=("ebrank:beta=2",),
)


@pytest.fixture(scope="module")
def datasets() -> list[Dataset]:
    """Return two folds, one of which says that its files are not as published."""
    made = []
    for number in (1, 2):
        data = ebrank.load("mq2007-like", scale=0.01, seed=number)
        odd = ("test: 3 queries, expected 5",) if number == 2 else ()
        made.append(replace(data, name="MQ2007", origin=Origin("MQ2007", False, 1.0, number, odd)))
    return made


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trials")


@pytest.fixture(scope="module")
def single(datasets: list[Dataset], trials: Path) -> list[FinishedDataset]:
    return [run_plan(PLAN, data, trials, jobs=2) for data in datasets]


@pytest.fixture(scope="module")
def both(datasets: list[Dataset], trials: Path, single: list[FinishedDataset]) -> FinishedDataset:
    """Return both folds, run where they were run before."""
    before = {path.name for path in trials.iterdir()}
    folds = [Fold.of(data, PLAN.config, f"MQ2007, fold {data.fold}") for data in datasets]
    finished = run_folds(PLAN, folds, lambda place: (datasets[place], None), trials)
    assert {path.name for path in trials.iterdir()} == before, "no trial was run again"
    return finished


@pytest.mark.slow
def test_each_fold_has_its_own_choice(both: FinishedDataset, single: list[FinishedDataset]) -> None:
    need, label = (EBRANK, PLAN.config), entrant_of(EBRANK).label
    chosen = both.setup.chosen[need]
    assert isinstance(chosen, RankerByFold), "the folds of this test disagree"
    assert list(chosen.rankers) == [each.setup.chosen[need] for each in single]
    records = [record for record in both.setup.tuning if record.label == label]
    assert [record.fold for record in records] == [1, 2]
    assert [replace(record, fold=None) for record in records] == [
        next(record for record in each.setup.tuning if record.label == label) for each in single
    ]
    assert both.setup.also == ("ebrank:beta=2, tuned",)
    own = [each.setup.run("ebrank:beta=2, tuned").ranker for each in single]
    tuned = both.setup.run("ebrank:beta=2, tuned").ranker
    assert [in_fold(tuned, place) for place in (0, 1)] == own, "what was tuned for the user, too"
    given = [record for record in both.setup.tuning if record.seed is None]
    assert [record.fold for record in given] == [None] * len(given)
    assert len(given) == len(GIVEN)
    groups = [row.group for row in shown(both, "tuning").rows]
    assert {"EBRank (paper), fold 1", "EBRank (paper), fold 2", "EBRank (exposure)"} <= set(groups)


@pytest.mark.slow
def test_the_record_says_which_folds(both: FinishedDataset, single: list[FinishedDataset]) -> None:
    record = document("x", "x", PLAN, both)
    own = [document("x", "x", PLAN, each) for each in single]
    assert (record.name, record.folds) == ("MQ2007, 2 folds", (1, 2))
    assert record.fingerprint == "+".join(each.fingerprint for each in own)
    assert (record.sessions, record.queries) == (240, max(each.queries for each in own))
    assert record.test_queries == sum(each.test_queries for each in own)
    names = [row.cells[0] for row in shown(both, "table1").rows]
    assert names == ["MQ2007, fold 1", "MQ2007, fold 2"]
    assert {run["sessions"] for run in record.runs} == {240}
    assert "Figures on MQ2007 by Tao Yang" in "".join(each.note for each in own[0].ledger)
    assert "not those of MQ2007 as published" in record.ledger[-1].note, "of the second fold"


def shown(finished: FinishedDataset, name: str) -> Table:
    return document("x", "x", PLAN, finished).displays[name].tables[0]
