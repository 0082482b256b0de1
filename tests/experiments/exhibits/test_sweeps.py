"""ε, β, the wrong examination curve and the default of x^b, which vary one value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.evidence import Examination
from ebrank.experiments.exhibits.sweeps import BETA, DEFAULT, EPSILONS, EXAMINATION, Sweep
from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, UCBRANK, entrant_of
from ebrank.experiments.framework.measures import MEASURES
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset
from ebrank.experiments.framework.tuning import grid_of
from ebrank.rankers import registry
from ebrank.simulation.users import PositionBased
from tests.experiments.made import numbers

PRIOR, OURS = entrant_of("prior"), entrant_of(EXPOSURE)


@pytest.mark.parametrize("sweep", [BETA, EXAMINATION, EPSILONS, DEFAULT], ids=lambda s: s.name)
def test_lines_and_rows_are_the_means_of_the_runs(finished: FinishedDataset, sweep: Sweep) -> None:
    outcome, runs = finished.outcomes[sweep.name], sweep.runs(finished.setup)
    (table,) = outcome.tables
    for row, ((entrant, value), run) in zip(table.rows, runs.items(), strict=True):
        assert (row.cells[0], row.group) == (sweep.text(value), entrant.label)
        assert numbers(row.cells[1:]) == [m.mean(finished.results[run]) for m in MEASURES]
    if sweep is DEFAULT:
        return
    lines = [line for figure in outcome.figures for line in figure.panels[1].series]
    assert len(lines) == len(sweep.entrants)
    drawn = [height for line in lines for height in line.y]
    assert drawn == [finished.results[run].warm_ndcg.mean() for run in runs.values()]
    assert [x for line in lines for x in line.x] == [value for _, value in runs]
    assert all(len(set(line.y)) > 1 for line in lines if line.style == OURS.style), "no effect"


def test_a_run_differs_in_the_varied_value_alone(finished: FinishedDataset) -> None:
    setup = finished.setup
    assert BETA.run(setup, OURS, 2.0) == setup.run(EXPOSURE, beta=2.0)
    assert BETA.run(setup, OURS, 5.0) == setup.run(EXPOSURE)
    run = EXAMINATION.run(setup, PRIOR, 0.5)
    assert run.config.believed == Examination(severity=0.5, cutoff=5)
    assert run.config.users == setup.config.users
    assert EXAMINATION.run(setup, PRIOR, 1.0) == setup.run("prior")


def test_what_rankers_believe_goes_by_the_row_whatever_is_configured(
    finished: FinishedDataset,
) -> None:
    setup = finished.setup
    config = replace(setup.config, believed=Examination(severity=3.0, cutoff=5))
    wrong = replace(setup, config=config)
    assert EXAMINATION.run(wrong, PRIOR, 1.0).config.believed is None, "the users' own"
    assert EXAMINATION.run(wrong, PRIOR, 3.0).config == config
    measured = replace(setup.config, users=PositionBased(Examination(curve=(1.0, 0.3))))
    for severity in (0.5, 1.0):
        run = EXAMINATION.run(replace(setup, config=measured), PRIOR, severity)
        assert run.config.believed == Examination(severity=severity)


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
    values = [value for entrant, value in EPSILONS.runs(setup) if entrant.key == EBRANK]
    assert values == sorted({*grid_of(EBRANK)["epsilon"], 33.0})


def test_both_defaults_side_by_side(finished: FinishedDataset) -> None:
    (figure,) = finished.outcomes["default"].figures
    zero, mean = figure.panels[0].series
    assert zero.x == mean.x == ("DBGD", "MGD", "PDGD", "CFTopK", "CFRandomK", "CFEpsilon")
    assert {panel.kind for panel in figure.panels} == {"bars"}
    for bars, default in ((zero, "zero"), (mean, "mean")):
        run = finished.setup.run("cftopk:features=concate", default=default)
        assert bars.y[3] == finished.results[run].cold_ndcg.mean()
    assert zero.y != mean.y
