"""ε and β, which vary one value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.experiments.exhibits.sweeps import BETA, EPSILONS
from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, UCBRANK, entrant_of
from ebrank.experiments.framework.experiment import Experiment
from ebrank.experiments.framework.measures import MEASURES
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset
from ebrank.experiments.framework.tuning import grid_of
from ebrank.rankers import registry
from tests.experiments.made import numbers


@pytest.mark.parametrize("sweep", [BETA, EPSILONS], ids=lambda sweep: sweep.name)
def test_lines_and_rows_are_the_means_of_the_runs(
    finished: FinishedDataset, sweep: Experiment
) -> None:
    outcome, runs = finished.outcomes[sweep.name], sweep.runs(finished.setup)
    (table,) = outcome.tables
    for row, ((key, value), run) in zip(table.rows, runs.items(), strict=True):
        assert (row.cells[0], row.group) == (f"{value:g}", entrant_of(key).label)
        assert numbers(row.cells[1:]) == [m.mean(finished.results[run]) for m in MEASURES]
    lines = [line for figure in outcome.figures for line in figure.panels[1].series]
    assert len(lines) == len({key for key, _ in runs})
    drawn = [height for line in lines for height in line.y]
    assert drawn == [finished.results[run].warm_ndcg.mean() for run in runs.values()]
    assert [x for line in lines for x in line.x] == [value for _, value in runs]
    ours = entrant_of(EXPOSURE).style
    assert all(len(set(line.y)) > 1 for line in lines if line.style == ours), "no effect"


def test_a_run_differs_in_the_varied_value_alone(finished: FinishedDataset) -> None:
    runs = BETA.runs(finished.setup)
    assert runs[EXPOSURE, 2.0] == finished.setup.run(EXPOSURE, beta=2.0)
    assert runs[EXPOSURE, 5.0] == finished.setup.run(EXPOSURE)


def test_the_chosen_epsilon_is_named_and_bold(finished: FinishedDataset) -> None:
    setup, outcome = finished.setup, finished.outcomes["epsilon"]
    ucb, ours = outcome.figures
    assert [figure.name for figure in (ucb, ours)] == ["epsilon-ucbrank", "epsilon-ebrank"]
    chosen = setup.chosen[UCBRANK, setup.config].value("epsilon")
    (line,) = ucb.panels[2].series
    assert line.label == f"UCBRank, chosen {chosen:g}"
    assert line.x == grid_of(UCBRANK)["epsilon"]
    assert [line.style for line in ours.panels[0].series] == ["ebrank", "ebrank-exposure"]
    bold = [
        (row.group, row.cells[0])
        for row in outcome.tables[0].rows
        if isinstance(row.cells[1], Cell) and row.cells[1].best
    ]
    usual = [record for record in setup.tuning if record.entering_probability == 1.0]
    assert bold == [(record.label, f"{record.value:g}") for record in usual]


def test_an_epsilon_that_was_given_is_looked_at_too(finished: FinishedDataset) -> None:
    need = EBRANK, finished.setup.config
    given = {**finished.setup.chosen, need: registry.parse("ebrank:epsilon=33")}
    setup = replace(finished.setup, chosen=given)
    values = [value for key, value in EPSILONS.runs(setup) if key == EBRANK]
    assert values == sorted({*grid_of(EBRANK)["epsilon"], 33.0})
