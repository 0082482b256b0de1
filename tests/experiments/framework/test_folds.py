"""Folds pooled: every test query counts once, and as much as any other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ebrank.errors import DataError, ParameterError
from ebrank.evaluation.significance import compare, fisher_randomization, query_differences
from ebrank.experiments.framework.folds import check_disjoint, pooled
from ebrank.experiments.framework.measures import (
    MEASURES,
    Measure,
    behavior_ratios,
    cells,
    mean_of,
)
from ebrank.simulation.result import Result, summary
from tests.experiments.made import QUERIES, result


def folds(ranker: str, levels: tuple[float, float], seed: int) -> list[Result]:
    """Return a ranker's results in two folds, the second with half of the queries."""
    whole = [
        result(ranker, [(level, level, level)] * 3, noise=0.2, seed=seed + place)
        for place, level in enumerate(levels)
    ]
    half = tuple(
        replace(
            trial,
            cold_by_query=trial.cold_by_query[: QUERIES // 2],
            warm_by_query=trial.warm_by_query[: QUERIES // 2],
            cum_by_query=trial.cum_by_query[: QUERIES // 2],
            run_by_query=trial.run_by_query[: QUERIES // 2],
            cold_ndcg=np.array([[0.1], [trial.cold_by_query[: QUERIES // 2].mean()]]),
            warm_ndcg=np.array([[0.1], [trial.warm_by_query[: QUERIES // 2].mean()]]),
            cum_ndcg=np.array([1.0, trial.cum_by_query[: QUERIES // 2].sum()]),
            run_ndcg=np.array([0.1, trial.run_by_query[: QUERIES // 2].sum()]),
        )
        for trial in whole[1].trials
    )
    return [whole[0], replace(whole[1], trials=half)]


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
    compared = compare(a, b, measure.metric)
    assert compared.difference == pytest.approx(measure.mean(a) - measure.mean(b))
    by_fold = [query_differences(x, y, measure.metric) for x, y in zip(A, B, strict=True)]
    assert compared.p_value == fisher_randomization(np.concatenate(by_fold))
    alone = compare(A[0], B[0], measure.metric)
    assert compared.queries > alone.queries


def test_what_else_a_trial_has_is_that_of_all_folds() -> None:
    made = []
    for place, fold in enumerate(A):
        more = {
            "wait_shown": np.full(2 + place, place),
            "watched": np.full(2 + place, 9),
            "weights": np.array([1.0] * (2 + place) + [4.0]),
            "calibration": np.full((place, 5), 0.5),
        }
        trials = tuple(replace(trial, **more) for trial in fold.trials)  # type: ignore[arg-type]
        made.append(replace(fold, trials=trials))
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


def test_one_fold_is_itself() -> None:
    alone = pooled(A[:1])
    for measure in MEASURES:
        np.testing.assert_allclose(measure.values(alone), measure.values(A[0]))


def test_only_one_ranker_is_pooled() -> None:
    with pytest.raises(ParameterError, match="the same ranker"):
        pooled([A[0], B[0]])


def test_a_query_that_is_tested_in_two_folds_would_count_twice() -> None:
    first, second = np.array(["1", "2"]), np.array(["3"])
    check_disjoint({"fold 1": first, "fold 2": second})
    with pytest.raises(DataError, match="query 2 is a test query of fold 1 and of fold 3, and wo"):
        check_disjoint({"fold 1": first, "fold 2": second, "fold 3": np.array(["2"])})
