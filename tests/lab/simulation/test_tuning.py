"""Choosing parameters: by validation queries, under seeds of their own, over the whole grid."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from ebrank.errors import DataError, ParameterError
from ebrank.kernels import streams
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation import parallel
from ebrank.lab.simulation import tuning as tuning_module
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import simulate
from ebrank.lab.simulation.result import Result
from ebrank.lab.simulation.tuning import (
    RunAll,
    Tuning,
    check_validation,
    read_grid,
    search,
    tune,
    tuning_seed,
)

EBRANK = registry.parse("ebrank:estimator=exposure")
SHORT = SimulationConfig(sessions=120, updates=4)


@pytest.fixture(scope="module")
def tuning(dataset: Dataset) -> Tuning:
    grid = {"epsilon": (0.0, 20.0, 5.0), "beta": (1.0, 5.0)}
    return tune(EBRANK, grid, running(dataset, seed=7, trials=2), seed=7)


def running(
    dataset: Dataset, config: SimulationConfig = SHORT, *, seed: int = 0, trials: int = 1
) -> RunAll:
    """Return what runs rankers under the seed to tune with."""
    return partial(
        parallel.run, dataset, config=config, seed=tuning_seed(seed), trials=trials, jobs=2
    )


def with_scores(tuning: Tuning, scores: list[float]) -> Tuning:
    """Return the tuning as if its points had these validation scores; test scores are reversed."""
    points = []
    for point, score in zip(tuning.points, scores, strict=True):
        trials = tuple(
            replace(t, validation_ndcg=score, warm_ndcg=0 * t.warm_ndcg - score)
            for t in point.result.trials
        )
        points.append(replace(point, result=replace(point.result, trials=trials)))
    return replace(tuning, points=tuple(points))


def test_the_whole_grid_is_tried_with_all_else_as_given(tuning: Tuning) -> None:
    values = [(point.values["epsilon"], point.values["beta"]) for point in tuning.points]
    assert values == list(itertools.product((0.0, 20.0, 5.0), (1.0, 5.0)))
    for point in tuning.points:
        assert point.ranker == EBRANK.with_parameters(**point.values)
        assert point.ranker.value("estimator") == "exposure"
        assert len(point.validation_ndcg) == 2


def test_points_are_simulations_with_the_tuning_seed(dataset: Dataset, tuning: Tuning) -> None:
    point = tuning.points[3]
    again = simulate(dataset, point.ranker, SHORT, tuning_seed(7), trials=2)
    expected = [trial.validation_ndcg for trial in again.trials]
    assert point.validation_ndcg.tolist() == expected


def test_the_best_has_the_highest_validation_score_and_of_equals_is_the_first(
    tuning: Tuning,
) -> None:
    scored = with_scores(tuning, [0.5, 0.8, 0.7, 0.9, 0.1, 0.9])
    assert scored.best is scored.points[3]


def test_the_choice_can_be_typed(tuning: Tuning) -> None:
    for point in tuning.points:
        assert registry.parse(point.text) == point.ranker
    assert tuning.points[3].text == "ebrank:epsilon=20,estimator=exposure,beta=5"


@pytest.mark.parametrize(
    ("best", "edge"),
    [(0, ["beta"]), (1, ["beta"]), (2, ["epsilon", "beta"]), (4, ["beta"])],
)
def test_the_edge_of_a_grid_is_told(tuning: Tuning, best: int, edge: list[str]) -> None:
    # ε = 0 is no edge: there is nothing below. β has two values, both at the edge.
    scores = [0.5] * 6
    scores[best] = 0.6
    assert with_scores(tuning, scores).at_the_edge == edge


def test_choices_and_flags_have_no_edge(dataset: Dataset) -> None:
    grid = {"estimator": ("ips", "exposure"), "clamp": (False, True)}
    tuned = tune(EBRANK, grid, running(dataset))
    assert tuned.at_the_edge == []
    assert tuned.points[0].text == "ebrank:estimator=ips,clamp=false"


def test_what_the_data_choose_may_be_one_of_the_values(dataset: Dataset) -> None:
    grid = read_grid(EBRANK, ["ridge"], ["auto,0.001,0.1"])
    assert grid == {"ridge": (None, 0.001, 0.1)}
    tuned = with_scores(tune(EBRANK, grid, running(dataset)), [0.5, 0.4, 0.3])
    assert tuned.best.text == "ebrank:estimator=exposure,ridge=auto"
    assert tuned.at_the_edge == []
    assert with_scores(tuned, [0.3, 0.4, 0.5]).at_the_edge == ["ridge"]


# --- searching ---------------------------------------------------------------------------------


def searched(
    tuning: Tuning, grid: dict[str, tuple[float, ...]], score: Callable[..., float]
) -> tuple[Tuning, list[int]]:
    """Return a search of points with made-up validation scores, and how many were run at a time."""
    runs: list[int] = []
    like = tuning.points[0].result

    def run(rankers: Sequence[Ranker]) -> list[Result]:
        runs.append(len(rankers))
        return [
            replace(like, trials=(replace(like.trials[0], validation_ndcg=score(ranker)),))
            for ranker in rankers
        ]

    return search(EBRANK, grid, run, seed=7), runs


def peak(epsilon: float, beta: float) -> Callable[[Ranker], float]:
    """Return a score that is best at one point; the best ε depends on β, as it does in EBRank."""

    def score(ranker: Ranker) -> float:
        along = np.log((1 + ranker.value("epsilon")) / (1 + epsilon))
        across = np.log(ranker.value("beta") / beta)
        return float(1 / (1 + along**2 + across**2 + along * across / 2))

    return score


GRID: dict[str, tuple[float, ...]] = {
    "beta": (1.0, 2.0, 5.0, 10.0),
    "epsilon": (0.0, 5.0, 20.0, 100.0),
}


@pytest.mark.parametrize(("epsilon", "beta"), [(20.0, 2.0), (5.0, 10.0), (0.0, 1.0)])
def test_a_search_finds_a_peak_on_the_grid(tuning: Tuning, epsilon: float, beta: float) -> None:
    found, _ = searched(tuning, GRID, peak(epsilon, beta))
    assert found.best.values == {"beta": beta, "epsilon": epsilon}
    assert found.seed == tuning_seed(7)


def test_a_search_goes_beyond_a_grid_that_is_too_narrow(tuning: Tuning) -> None:
    found, runs = searched(tuning, GRID, peak(500.0, 0.3))
    assert found.best.values == {"beta": 0.25, "epsilon": 500.0}
    assert found.at_the_edge == []
    assert len(found.points) == sum(runs) < 40, "no point is run twice"


def test_a_search_gives_up_after_some_steps(tuning: Tuning) -> None:
    found, runs = searched(tuning, {"epsilon": (0.0, 10.0, 20.0)}, lambda r: r.value("epsilon"))
    assert [point.values["epsilon"] for point in found.points] == [0, 10, 20, 40, 80, 160, 320]
    assert runs == [3, 1, 1, 1, 1]
    assert found.at_the_edge == ["epsilon"]


def test_a_search_stays_within_the_range_of_a_parameter(tuning: Tuning) -> None:
    found, _ = searched(tuning, {"epsilon": (0.0, 10.0)}, lambda r: -r.value("epsilon"))
    assert [point.values["epsilon"] for point in found.points] == [0.0, 10.0]
    parameter = next(p for p in registry.parse("toprank").parameters() if p.name == "delta")
    assert parameter.at_most == 1.0
    assert tuning_module._beyond(parameter, (0.1, 1.0), 1.0) is None


# --- seeds -------------------------------------------------------------------------------------


def test_no_report_can_run_a_tuning_trial() -> None:
    seeds = [0, 1, 2, 3, 1000, 2**63 - 2]
    assert all(-(2**63) <= tuning_seed(seed) < -1 for seed in seeds)
    assert len({tuning_seed(seed) for seed in seeds}) == len(seeds)
    keys = [
        int(streams.trial_key(seed, trial))
        for seed in (*range(40), *map(tuning_seed, range(40)))
        for trial in range(10)
    ]
    assert len(set(keys)) == 800
    with pytest.raises(ParameterError, match="seed must be 0 or more"):
        tuning_seed(-1)


# --- grids -------------------------------------------------------------------------------------


def test_grids_are_read_as_the_parameters_say() -> None:
    assert read_grid(EBRANK, ["epsilon"], ["0, 1,1,2.5"]) == {"epsilon": (0.0, 1.0, 2.5)}
    assert read_grid(EBRANK, ["clamp", "estimator"], []) == {
        "clamp": (False, True),
        "estimator": ("ips", "exposure", "exact"),
    }
    own = read_grid(EBRANK, [], [])
    assert own == {"epsilon": (0.0, 5.0, 10.0, 20.0, 30.0, 50.0, 70.0, 100.0)}


@pytest.mark.parametrize(
    ("names", "texts", "problem"),
    [
        (["eps"], ["1"], "ebrank has no parameter 'eps'; it has epsilon, estimator, "),
        (["epsilon", "epsilon"], [], "given twice"),
        (["epsilon", "beta"], ["1,2"], "2 parameters but 1 grids"),
        ([], ["1,2"], "0 parameters but 1 grids"),
        (["beta"], [], "beta has no default grid"),
        (["epsilon"], ["0,-1"], "epsilon takes a number of 0 or more, not -1.0"),
        (["epsilon"], ["0,,1"], "epsilon takes a number of 0 or more, not ''"),
        (["estimator"], ["ips,other"], "estimator takes ips or exposure or exact, not 'other'"),
    ],
)
def test_bad_grids_are_refused(names: list[str], texts: list[str], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        read_grid(EBRANK, names, texts)


def declared_grids() -> list[Any]:
    return [
        pytest.param(ranker, parameter, id=f"{name}-{parameter.name}")
        for name, ranker in registry.built_in().items()
        for parameter in registry.parse(name).parameters()
        if parameter.grid
    ]


@pytest.mark.parametrize(("ranker", "parameter"), declared_grids())
def test_declared_grids_are_in_range(ranker: Any, parameter: Any) -> None:  # noqa: ANN401
    for value in parameter.grid:
        parameter.check(value, ranker.name)
        assert type(value) is type(parameter.default)
    assert list(parameter.grid) == sorted(set(parameter.grid))


def test_runs_without_validation_sessions_choose_nothing(dataset: Dataset) -> None:
    splits = np.where(dataset.query_splits == 1, 0, 2).astype(np.int8)
    unvalidated = replace(dataset, query_splits=splits)
    with pytest.raises(DataError, match="no validation queries"):
        check_validation(unvalidated)
    brief = replace(SHORT, sessions=2, updates=1)
    with pytest.raises(ParameterError, match="set more sessions"):
        tune(EBRANK, {"epsilon": (0.0,)}, running(dataset, brief, trials=3))
