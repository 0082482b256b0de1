"""ε, β, the wrong examination curve and the default of x^b, which vary one value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.evidence import Examination
from ebrank.experiments.exhibits.sweeps import BETA, EXAMINATION, Sweep, epsilon_runs, epsilons
from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, TUNED, UCBRANK, entrant_of
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset
from ebrank.experiments.framework.tuning import grid_of
from ebrank.rankers import registry
from ebrank.simulation.users import PositionBased

PRIOR, OURS = entrant_of("prior"), entrant_of(EXPOSURE)


@pytest.mark.parametrize("sweep", [BETA, EXAMINATION], ids=lambda sweep: sweep.name)
def test_lines_and_rows_are_the_means_of_the_runs(finished: FinishedDataset, sweep: Sweep) -> None:
    outcome = finished.outcomes[sweep.name]
    (figure,), (table,) = outcome.figures, outcome.tables
    place = sweep.entrants.index(OURS)
    line = figure.panels[1].series[place]
    assert line.x == sweep.values
    for index, value in enumerate(sweep.values):
        result = finished.results[sweep.run(finished.setup, OURS, value)]
        assert line.y[index] == result.warm_ndcg.mean()
        row = table.rows[place * len(sweep.values) + index]
        assert (row.cells[0], row.group) == (f"{value:g}", OURS.label)
        assert isinstance(row.cells[2], Cell)
        assert row.cells[2].value == result.warm_ndcg.mean()
    assert len(set(line.y)) > 1, "the value changes nothing"


def test_beta_changes_beta_alone(finished: FinishedDataset) -> None:
    setup = finished.setup
    assert BETA.run(setup, OURS, 2.0) == setup.run(EXPOSURE, beta=2.0)
    assert BETA.run(setup, OURS, 5.0) == setup.run(EXPOSURE)


def test_rankers_believe_what_users_do_not(finished: FinishedDataset) -> None:
    setup = finished.setup
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


def test_a_point_for_each_epsilon_and_the_chosen_one_named(finished: FinishedDataset) -> None:
    setup = finished.setup
    ucb, ours = finished.outcomes["epsilon"].figures
    assert [figure.name for figure in (ucb, ours)] == ["epsilon-ucbrank", "epsilon-ebrank"]
    chosen = setup.chosen[UCBRANK, setup.config].value("epsilon")
    (line,) = ucb.panels[2].series
    assert line.label == f"UCBRank, chosen {chosen:g}"
    assert line.x == grid_of(UCBRANK)["epsilon"]
    for value, height in zip(line.x, line.y, strict=True):
        run = setup.run(UCBRANK, epsilon=value)
        assert height == finished.results[run].cum_ndcg.mean()
    assert [line.style for line in ours.panels[0].series] == ["ebrank", "ebrank-exposure"]


def test_the_table_of_epsilon_marks_the_chosen_one(finished: FinishedDataset) -> None:
    (table,) = finished.outcomes["epsilon"].tables
    bold = [
        (row.group, row.cells[0])
        for row in table.rows
        if isinstance(row.cells[1], Cell) and row.cells[1].best
    ]
    assert bold == [
        (record.label, f"{record.value:g}")
        for record in finished.setup.tuning
        if record.entering_probability == 1.0
    ]


def test_an_epsilon_that_was_given_is_looked_at_too(finished: FinishedDataset) -> None:
    given = dict(finished.setup.chosen)
    given[EBRANK, finished.setup.config] = registry.parse("ebrank:epsilon=33")
    setup = replace(finished.setup, chosen=given)
    assert epsilons(setup, EBRANK) == tuple(sorted({*grid_of(EBRANK)["epsilon"], 33.0}))
    assert len(epsilon_runs(setup)) == 1 + sum(len(grid_of(key)["epsilon"]) for key in TUNED)


def test_both_defaults_side_by_side(finished: FinishedDataset) -> None:
    outcome = finished.outcomes["default"]
    (figure,), (table,) = outcome.figures, outcome.tables
    zero, mean = figure.panels[0].series
    assert zero.x == mean.x == ("DBGD", "MGD", "PDGD", "CFTopK", "CFRandomK", "CFEpsilon")
    assert {panel.kind for panel in figure.panels} == {"bars"}
    for bars, default in ((zero, "zero"), (mean, "mean")):
        run = finished.setup.run("cftopk:features=concate", default=default)
        assert bars.y[3] == finished.results[run].cold_ndcg.mean()
    assert zero.y != mean.y
    assert [row.cells[0] for row in table.rows] == ["0", "mean"] * 6
    plain = finished.results[finished.setup.run("cftopk:features=concate")]
    assert isinstance(table.rows[6].cells[1], Cell)
    assert table.rows[6].cells[1].value == plain.cold_ndcg.mean()
