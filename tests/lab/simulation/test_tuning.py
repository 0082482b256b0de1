"""Choosing parameters: by validation queries, under seeds of their own."""

from __future__ import annotations

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
    Grid,
    RunAll,
    Tuning,
    check_validation,
    read_grid,
    search,
    tuning_seed,
)

EBRANK = registry.parse("ebrank:estimator=exposure")
SHORT = SimulationConfig(sessions=120, updates=4)


def running(
    dataset: Dataset, config: SimulationConfig = SHORT, *, seed: int = 0, trials: int = 1
) -> RunAll:
    """Return what runs rankers under the seed to tune with."""
    return partial(
        parallel.run, dataset, config=config, seed=tuning_seed(seed), trials=trials, jobs=2
    )


def test_points_are_simulations_with_the_tuning_seed_and_can_be_typed(dataset: Dataset) -> None:
    grid = {"epsilon": (0.0, 20.0, 5.0)}
    found = search(EBRANK, grid, running(dataset, seed=7, trials=2), seed=7, wider=0)
    assert [point.values for point in found.points] == [{"epsilon": e} for e in grid["epsilon"]]
    for point in found.points:
        ranker = registry.parse(point.ranker)
        assert ranker == EBRANK.with_parameters(**point.values)
        again = simulate(dataset, ranker, SHORT, tuning_seed(7), trials=2)
        assert point.validation_ndcg == tuple(trial.validation_ndcg for trial in again.trials)
    assert found.points[1].ranker == "ebrank:epsilon=20,estimator=exposure"
    (record,) = found.records("EBRank", 1.0)
    assert (record.value, record.ranker) == (found.best.values["epsilon"], found.best.ranker)
    assert [point.value for point in record.grid] == [0.0, 5.0, 20.0]


# --- searching ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def like(dataset: Dataset) -> Result:
    return simulate(dataset, EBRANK, SHORT)


def searched(
    like: Result, grid: Grid, score: Callable[..., float], wider: int = 4
) -> tuple[Tuning, list[int]]:
    """Return a search of points with made-up validation scores, and how many were run at a time."""
    runs: list[int] = []

    def run(rankers: Sequence[Ranker]) -> list[Result]:
        runs.append(len(rankers))
        return [
            replace(like, trials=(replace(like.trials[0], validation_ndcg=score(ranker)),))
            for ranker in rankers
        ]

    return search(EBRANK, grid, run, seed=7, wider=wider), runs


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
def test_a_search_finds_a_peak_on_the_grid(like: Result, epsilon: float, beta: float) -> None:
    found, _ = searched(like, GRID, peak(epsilon, beta))
    assert found.best.values == {"beta": beta, "epsilon": epsilon}
    assert found.seed == tuning_seed(7)


def test_a_search_goes_beyond_a_grid_that_is_too_narrow(like: Result) -> None:
    found, runs = searched(like, GRID, peak(500.0, 0.3))
    assert found.best.values == {"beta": 0.25, "epsilon": 500.0}
    assert found.at_the_edge == ()
    assert len(found.points) == sum(runs) < 40, "no point is run twice"


def test_a_search_gives_up_after_some_steps(like: Result) -> None:
    found, runs = searched(like, {"epsilon": (0.0, 10.0, 20.0)}, lambda r: r.value("epsilon"))
    assert [point.values["epsilon"] for point in found.points] == [0, 10, 20, 40, 80, 160, 320]
    assert runs == [3, 1, 1, 1, 1]
    assert found.at_the_edge == ("epsilon",)


def test_a_search_stays_within_the_range_of_a_parameter(like: Result) -> None:
    found, _ = searched(like, {"epsilon": (0.0, 10.0)}, lambda r: -r.value("epsilon"))
    assert [point.values["epsilon"] for point in found.points] == [0.0, 10.0]
    parameter = next(p for p in registry.parse("toprank").parameters() if p.name == "delta")
    assert parameter.at_most == 1.0
    assert tuning_module._beyond(parameter, (0.1, 1.0), 1.0) is None


def test_the_first_of_equals_is_chosen_and_edges_are_told(like: Result) -> None:
    """ε = 0 is no edge: there is nothing below. Nor have flags and words one."""
    ends = {"epsilon": (0.0, 5.0, 20.0), "beta": (1.0, 5.0)}
    found, _ = searched(like, ends, lambda ranker: 0.5, wider=0)
    assert (found.best, found.at_the_edge) == (found.points[0], ("beta",))
    found, _ = searched(like, ends, lambda ranker: ranker.value("epsilon"), wider=0)
    assert found.at_the_edge == ("epsilon", "beta")
    words, _ = searched(like, {"early_stopping": (False, True)}, lambda ranker: 0.5)
    assert words.at_the_edge == ()
    grid = read_grid(EBRANK, ["ridge"], ["auto,0.001,0.1"])
    assert grid == {"ridge": (None, 0.001, 0.1)}
    found, _ = searched(like, grid, lambda ranker: -(ranker.value("ridge") or 0.0))
    assert (found.best.ranker, found.at_the_edge) == (
        "ebrank:estimator=exposure,ridge=auto",
        (),
    )


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
    assert read_grid(EBRANK, ["early_stopping", "estimator"], []) == {
        "early_stopping": (False, True),
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
        search(EBRANK, {"epsilon": (0.0,)}, running(dataset, brief, trials=3))
