from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.data.dataset import Dataset
from ebrank.experiments.framework.experiment import Experiment, Run, Setup
from ebrank.experiments.framework.outcome import Outcome
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig

CONFIG = SimulationConfig()
SLOW = replace(CONFIG, entering_probability=0.1)


@pytest.fixture
def setup(dataset: Dataset) -> Setup:
    chosen = {
        ("ebrank", 1.0): registry.parse("ebrank:epsilon=30"),
        ("ebrank", 0.1): registry.parse("ebrank:epsilon=5"),
    }
    return Setup(dataset, CONFIG, chosen=chosen)


def test_a_tuned_entrant_has_the_epsilon_chosen_for_its_eta(setup: Setup) -> None:
    assert setup.run("ebrank") == Run(registry.parse("ebrank:epsilon=30"), CONFIG)
    assert setup.run("ebrank", SLOW) == Run(registry.parse("ebrank:epsilon=5"), SLOW)
    changed = setup.run("ebrank", min_impressions=20)
    assert str(changed.ranker) == "ebrank:epsilon=30,min_impressions=20"


def test_an_entrant_nobody_tuned_is_not_run_untuned(setup: Setup) -> None:
    with pytest.raises(KeyError):
        setup.run("ucbrank")
    with pytest.raises(KeyError):
        setup.run("ebrank", replace(CONFIG, entering_probability=0.7))


def test_any_other_text_is_the_ranker_it_names(setup: Setup) -> None:
    assert setup.run("ebrank:epsilon=0").ranker == registry.parse("ebrank:epsilon=0")
    assert setup.run("bm25", SLOW).config == SLOW


def test_what_is_tuned_for() -> None:
    keys = ("ebrank", "ucbrank")
    experiment = Experiment("x", "", lambda s, r: Outcome(), tuned=keys, etas=(0.1, 1.0))
    assert list(experiment.to_tune(CONFIG)) == [
        ("ebrank", 1.0),
        ("ucbrank", 1.0),
        ("ebrank", 0.1),
        ("ucbrank", 0.1),
    ]
    assert list(Experiment("y", "", lambda s, r: Outcome()).to_tune(CONFIG)) == []
