from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ebrank.errors import ParameterError
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation import parallel
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result
from ebrank.lab.simulation.tuning import GridPoint, TuningRecord, search, tuning_seed
from ebrank.paper import exhibits
from ebrank.paper.framework import tuning
from ebrank.paper.framework.entrants import EXPOSURE, EXPOSURE_BOTH, TUNING
from ebrank.paper.framework.exhibit import Setup
from ebrank.paper.report.tables import markdown
from tests.golden import check_golden

SHORT = SimulationConfig(sessions=200, updates=2)


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("ebrank:estimator=exposure,epsilon=30", "ebrank:estimator=exposure", {"epsilon": 30.0}),
        ("ebrank:epsilon=5", "ebrank", {"epsilon": 5.0}),
        ("smoothedctr:strength=7", "smoothedctr", {"strength": 7.0}),
        # who gives β too gives the entrant that tunes both
        ("ebrank:beta=20,epsilon=200", "ebrank:beta=5", {"beta": 20.0, "epsilon": 200.0}),
    ],
)
def test_a_given_ranker_takes_the_place_of_the_entrant_it_is(
    text: str, key: str, values: dict[str, float]
) -> None:
    given = tuning.read_given(["ucbrank:epsilon=0.4", text])
    assert list(given) == ["ucbrank", key]
    ranker, records = tuning.take_given((key, SHORT), given, SHORT)
    assert ranker == given[key] == registry.parse(text)
    assert {record.parameter: record.value for record in records} == values
    for record in records:
        assert (record.seed, record.grid) == (None, ())
        assert registry.parse(record.ranker) == ranker


@pytest.mark.parametrize("text", ["bm25", "ebrank:epsilon=3,tolerance=0.01", "ebrank", "prior"])
def test_rankers_that_cannot_be_given_are_rejected_with_a_list(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        tuning.read_given([text])
    message = str(caught.value)
    assert message.startswith(f"{text} is not a tuned ranker with its value; use one of ")
    assert "ucbrank:epsilon=…, ebrank:epsilon=…, ebrank:estimator=exposure,epsilon=…, " in message
    assert len(re.findall("[:,]", message)) >= len(TUNING)


def test_a_place_is_taken_once() -> None:
    with pytest.raises(ParameterError, match="ebrank is given twice"):
        tuning.read_given(["ebrank:epsilon=3", "ebrank:epsilon=4"])


def test_each_entrant_is_tuned_once_for_each_eta(dataset: Dataset) -> None:
    setup = Setup(dataset, SimulationConfig())
    needs = tuning.needs(exhibits.selected(), setup)
    assert len(needs) == 3 * 5
    assert {config.entering_probability for _, config in needs} == {0.1, 0.2, 0.4, 0.7, 1.0}
    assert all(ranker == registry.parse(key) for (key, _), ranker in needs.items())
    assert tuning.needs(exhibits.selected("table1,table3"), setup) == {}
    assert {key for key, _ in tuning.needs(exhibits.selected("ablation"), setup)} == {
        "ebrank",
        "ebrank:estimator=exposure",
    }


def test_runs_in_another_world_are_tuned_there(dataset: Dataset) -> None:
    setup = Setup(dataset, SimulationConfig())
    needs = tuning.needs(exhibits.selected("beyond"), setup)
    assert {key for key, _ in needs} == set(TUNING) - {"ebrank", EXPOSURE}, "β and ε are"
    assert len(needs) == (len(TUNING) - 2) * 12


def running(
    dataset: Dataset, config: SimulationConfig, trials: int
) -> Callable[[Sequence[Ranker]], list[Result]]:
    return lambda rankers: parallel.run(dataset, rankers, config, tuning_seed(3), trials=trials)


def test_the_choice_is_that_of_tuning_under_its_own_eta_and_seed(dataset: Dataset) -> None:
    slow = replace(SHORT, entering_probability=0.5)
    ranker, (record,) = tuning.tune(("ucbrank", slow), SHORT, 3, running(dataset, slow, 2))
    assert record.seed == tuning_seed(3) < 0
    values = [point.value for point in record.grid]
    assert values == sorted(values)
    assert set(tuning.grid_of("ucbrank")["epsilon"]) <= set(values)
    run = running(dataset, slow, 2)
    expected = search(registry.parse("ucbrank"), {"epsilon": values}, run, 3, wider=0)
    assert ranker == registry.parse(expected.best.ranker)
    assert record.ranker == expected.best.ranker
    for point, theirs in zip(record.grid, expected.points, strict=True):
        assert point.trials == theirs.validation_ndcg
    best = max(record.grid, key=lambda point: sum(point.trials))
    assert record.value == best.value == registry.parse(record.ranker).epsilon  # type: ignore[attr-defined]


def test_parameters_are_tuned_together_and_each_has_a_record(dataset: Dataset) -> None:
    ranker, records = tuning.tune((EXPOSURE_BOTH, SHORT), SHORT, 3, running(dataset, SHORT, 1))
    assert [record.parameter for record in records] == ["beta", "epsilon"]
    assert [record.value for record in records] == [ranker.value("beta"), ranker.value("epsilon")]
    for record in records:
        assert registry.parse(record.ranker) == ranker
        trials = {point.value: point.trials for point in record.grid}
        assert trials[record.value] == max(trials.values()), "with the others at their best"
    assert len(records[0].grid) >= 6


def test_five_tuning_trials_at_most_and_fewer_for_several_parameters() -> None:
    assert [tuning.tuning_trials(n, "ebrank") for n in (1, 5, 20)] == [1, 5, 5]
    assert [tuning.tuning_trials(n, "hybridlinucb") for n in (1, 5, 20)] == [1, 3, 3]


GRID = (GridPoint(0.0, (0.5, 0.6)), GridPoint(5.0, (0.7, 0.9)))
SLOW = TuningRecord("EBRank", 0.1, 5.0, "ebrank:epsilon=5", -2, False, GRID)
FAST = TuningRecord("EBRank", 1.0, 0.0, "ebrank:epsilon=0", -2, False, GRID[:1])
EDGE = replace(SLOW, at_the_edge=True)
GIVEN = TuningRecord("UCBRank", 1.0, 0.4, "ucbrank:epsilon=0.4")
STRENGTH = replace(FAST, label="Smoothed CTR", parameter="strength", value=5.0, grid=GRID)


def test_tables_of_what_was_tried() -> None:
    """Other worlds come last, other parameters are named, a choice at the edge is marked."""
    tables = [
        tuning.table(records)
        for records in (
            [FAST, SLOW, GIVEN],
            [replace(FAST, world="click rate × 0.15"), SLOW, FAST, STRENGTH],
            [FAST, EDGE, replace(EDGE, parameter="beta", at_the_edge=False)],
            [replace(SLOW, fold=1), replace(EDGE, fold=2)],
        )
    ]
    text = "\n".join(markdown(table) for table in tables if table is not None)
    check_golden(Path(__file__).parent / "golden" / "tuning.md", text)
    assert tuning.table([GIVEN]) is tuning.table([]) is None, "without tuning there is no table"
