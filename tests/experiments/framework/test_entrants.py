from __future__ import annotations

import pytest

from ebrank.experiments.framework.entrants import (
    CONCATE,
    CONCATENATING,
    CONTENDERS,
    ENTRANTS,
    EXPOSURE_UNTUNED,
    FIGURES,
    NON_CONCATE,
    PAPER,
    TUNING,
    UNTUNED,
    WITHOUT,
    Entrant,
    entrant_of,
    twin,
)
from ebrank.rankers import registry

SETTINGS = {"none": WITHOUT, "concate": CONCATE, "non-concate": NON_CONCATE}


def test_the_papers_rows_are_in_its_order() -> None:
    labels = ["DBGD", "MGD", "PDGD", "CFTopK", "CFRandomK", "CFEpsilon"]
    assert [one.label for one in PAPER] == [
        *("BM25", *labels),
        *(*labels, "PRIOR"),
        *("UCBRank", "EBRank"),
    ]


def test_keys_differ_and_name_rankers_in_the_setting_they_stand_under() -> None:
    assert len({one.key for one in ENTRANTS}) == len(ENTRANTS) == 21
    for one in PAPER:
        assert SETTINGS[registry.parse(one.key).setting] == one.setting
        assert entrant_of(one.key) is one


@pytest.mark.parametrize("one", ENTRANTS, ids=lambda one: one.key)
def test_entrants_with_a_grid_of_epsilon_are_tuned(one: Entrant) -> None:
    grids = {p.name: p.grid for p in registry.parse(one.key).parameters()}
    assert one.tuned == bool(grids.get("epsilon"))


def test_entrants_beyond_the_paper_with_a_grid_are_tuned() -> None:
    for key, parameters in TUNING.items():
        grids = {p.name: p.grid for p in registry.parse(key).parameters()}
        assert all(grids[name] or name == "beta" for name in parameters)


@pytest.mark.parametrize("one", CONTENDERS, ids=lambda one: one.key)
def test_contenders_are_tuned_in_all_parameters_that_have_a_grid(one: Entrant) -> None:
    grids = {p.name for p in registry.parse(one.key).parameters() if p.grid}
    if one.tuned:
        assert set(TUNING[one.key]) - {"beta"} == grids


def test_contenders_left_alone() -> None:
    untuned = [one.key for one in CONTENDERS if not one.tuned]
    assert untuned == [UNTUNED, EXPOSURE_UNTUNED]


def test_a_ranker_looks_the_same_in_both_settings() -> None:
    twins = {one: other for one in CONCATENATING if (other := twin(one))}
    assert len(twins) == 6
    assert all(one.style == other.style for one, other in twins.items())
    assert len({one.style for one in FIGURES}) == len(FIGURES) == 12


def test_concate_and_non_concate_are_one_group() -> None:
    assert {one.group for one in ENTRANTS if one.setting != WITHOUT} == {"with"}
    assert {one.group for one in ENTRANTS if one.setting == WITHOUT} == {"without"}
