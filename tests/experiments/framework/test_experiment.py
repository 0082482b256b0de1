from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.data.dataset import Dataset
from ebrank.experiments.framework.experiment import Run, Setup, world_of
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.users import parse

CONFIG = SimulationConfig()
SLOW = replace(CONFIG, entering_probability=0.1)


@pytest.fixture
def setup(dataset: Dataset) -> Setup:
    chosen = {
        ("ebrank", CONFIG): registry.parse("ebrank:epsilon=30"),
        ("ebrank", SLOW): registry.parse("ebrank:epsilon=5"),
    }
    return Setup(dataset, CONFIG, chosen=chosen)


def test_a_tuned_entrant_has_the_epsilon_chosen_for_its_config(setup: Setup) -> None:
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


def test_a_config_says_in_what_it_is_another_world() -> None:
    believed = replace(CONFIG.users.examination, severity=2.0)
    assert world_of(SLOW, CONFIG) == "", "η is told apart"
    assert world_of(replace(CONFIG, believed=believed), CONFIG) == "believed severity 2"
    cascade = replace(CONFIG, users=parse("cascade"), click_rate=0.15)
    assert world_of(cascade, CONFIG) == "cascade users, click rate × 0.15"
    assert world_of(cascade, replace(cascade, click_rate=1.0)) == "click rate × 0.15"
