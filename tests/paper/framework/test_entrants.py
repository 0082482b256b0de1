"""Who takes part, and what a setup runs for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.paper.framework import entrants
from ebrank.paper.framework.entrants import CONTENDERS, ENTRANTS, PAPER, TUNING, WITHOUT
from ebrank.paper.framework.exhibit import Run, Setup

SETTINGS = {"none": WITHOUT, "concate": entrants.CONCATE, "non-concate": entrants.NON_CONCATE}
CONFIG = SimulationConfig()
SLOW = replace(CONFIG, entering_probability=0.1)


def test_the_papers_rows_are_in_its_order_and_setting() -> None:
    twice = ["DBGD", "MGD", "PDGD", "CFTopK", "CFRandomK", "CFEpsilon"]
    labels = ["BM25", *twice, *twice, "PRIOR", "UCBRank", "EBRank (paper)"]
    assert [entrant.label for entrant in PAPER] == labels
    assert len({entrant.key for entrant in ENTRANTS}) == len(ENTRANTS) == 21
    for entrant in PAPER:
        assert SETTINGS[registry.parse(entrant.key).setting] == entrant.setting
        assert entrants.entrant_of(entrant.key) is entrant
    for entrant in ENTRANTS:
        assert entrant.group == ("without" if entrant.setting == WITHOUT else "with")


@pytest.mark.parametrize("entrant", [*ENTRANTS, *CONTENDERS], ids=lambda entrant: entrant.key)
def test_entrants_are_tuned_in_all_parameters_that_have_a_grid(entrant: entrants.Entrant) -> None:
    grids = {p.name for p in registry.parse(entrant.key).parameters() if p.grid}
    if entrant in ENTRANTS:
        assert entrant.tuned == ("epsilon" in grids)
    elif entrant.tuned:
        assert set(TUNING[entrant.key]) - {"beta"} == grids
    else:
        assert entrant.key in (entrants.UNTUNED, entrants.EXPOSURE_UNTUNED)


def test_a_ranker_looks_the_same_in_both_settings() -> None:
    twins = {each: other for each in entrants.CONCATENATING if (other := entrants.twin(each))}
    assert len(twins) == 6
    assert all(each.style == other.style for each, other in twins.items())
    styles = {each.style for each in entrants.FIGURES}
    assert len(styles) == len(entrants.FIGURES) == 12


def test_a_run_has_what_was_chosen_for_its_config(dataset: Dataset) -> None:
    chosen = {
        ("ebrank", CONFIG): registry.parse("ebrank:epsilon=30"),
        ("ebrank", SLOW): registry.parse("ebrank:epsilon=5"),
    }
    setup = Setup(dataset, CONFIG, chosen=chosen)
    for (key, config), ranker in chosen.items():
        assert setup.run(key, config) == Run(ranker, config)
    changed = setup.run("ebrank", min_impressions=20)
    assert str(changed.ranker) == "ebrank:epsilon=30,min_impressions=20"
    assert setup.run("ebrank:epsilon=0", SLOW) == Run(registry.parse("ebrank:epsilon=0"), SLOW)
    for key, config in (("ucbrank", CONFIG), ("ebrank", replace(CONFIG, click_rate=0.5))):
        with pytest.raises(KeyError):
            setup.run(key, config)
