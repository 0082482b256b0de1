from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ebrank.data.dataset import Dataset
from ebrank.errors import ParameterError
from ebrank.experiments import catalog
from ebrank.experiments.framework import tuning
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.tuning import tune, tuning_seed

SHORT = SimulationConfig(sessions=200, updates=2)


def test_a_given_ranker_takes_the_place_of_the_entrant_it_is() -> None:
    texts = ["ebrank:estimator=exposure,epsilon=30", "ucbrank:epsilon=0.4", "ebrank:epsilon=5"]
    given = choice.read_given(texts)
    assert list(given) == ["ebrank:estimator=exposure", "ucbrank", "ebrank"]
    assert given["ebrank"] == registry.parse("ebrank:epsilon=5")


@pytest.mark.parametrize("text", ["bm25", "ebrank:epsilon=3,beta=2", "ebrank", "prior"])
def test_what_takes_no_place_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        choice.read_given([text])
    assert str(caught.value) == (
        f"{text} takes the place of no tuned ranker; those are ucbrank:epsilon=…, "
        "ebrank:epsilon=…, ebrank:estimator=exposure,epsilon=…"
    )


def test_a_place_is_taken_once() -> None:
    with pytest.raises(ParameterError, match="ebrank is given twice"):
        choice.read_given(["ebrank:epsilon=3", "ebrank:epsilon=4"])


def test_each_entrant_is_tuned_once_for_each_eta() -> None:
    needs = choice.needs(catalog.selected(), SimulationConfig())
    assert len(needs) == len(set(needs)) == 3 * 5
    assert choice.needs(catalog.selected("table1,table3"), SimulationConfig()) == []


def test_the_choice_is_that_of_tuning_under_its_own_eta_and_seed(
    dataset: Dataset, tmp_path: Path
) -> None:
    ranker, record = choice.tune(
        ("ucbrank", 0.5), dataset, SHORT, 3, trials=2, jobs=1, folder=tmp_path
    )
    expected = tune(
        dataset,
        registry.parse("ucbrank"),
        {"epsilon": choice.grid_of("ucbrank")},
        replace(SHORT, entering_probability=0.5),
        3,
        trials=2,
    )
    assert ranker == expected.best.ranker
    assert record.ranker == expected.best.text
    assert record.seed == tuning_seed(3) < 0
    assert [point.epsilon for point in record.grid] == list(choice.grid_of("ucbrank"))
    for point, theirs in zip(record.grid, expected.points, strict=True):
        assert point.trials == tuple(theirs.validation_ndcg)
    best = max(record.grid, key=lambda point: sum(point.trials))
    assert record.epsilon == best.epsilon == registry.parse(record.ranker).epsilon  # type: ignore[attr-defined]


def test_what_is_given_is_recorded_as_such() -> None:
    given = choice.read_given(["ebrank:estimator=exposure,epsilon=30"])
    ranker, record = choice.take(("ebrank:estimator=exposure", 0.2), given)
    assert (record.epsilon, record.seed, record.grid) == (30.0, None, ())
    assert registry.parse(record.ranker) == ranker


def test_five_tuning_trials_at_most() -> None:
    assert [choice.tuning_trials(n) for n in (1, 5, 20)] == [1, 5, 5]
