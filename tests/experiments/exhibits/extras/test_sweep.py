"""β and the wrong examination curve, which vary one value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.evidence import Examination
from ebrank.experiments.exhibits.extras import beta, examination
from ebrank.experiments.framework.entrants import EXPOSURE, entrant_of
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset
from ebrank.simulation.users import PositionBased


@pytest.mark.parametrize("module", [beta, examination])
def test_lines_and_rows_are_the_means_of_the_runs(
    finished: FinishedDataset, module: object
) -> None:
    sweep = module.SWEEP  # type: ignore[attr-defined]
    outcome = finished.outcomes[sweep.name]
    (figure,), (table,) = outcome.figures, outcome.tables
    one = entrant_of(EXPOSURE)
    place = sweep.entrants.index(one)
    line = figure.panels[1].series[place]
    assert line.x == sweep.values
    for index, value in enumerate(sweep.values):
        result = finished.results[sweep.run(finished.setup, one, value)]
        assert line.y[index] == result.warm_ndcg.mean()
        row = table.rows[place * len(sweep.values) + index]
        assert (row.cells[0], row.group) == (f"{value:g}", one.label)
        cell = row.cells[2]
        assert isinstance(cell, Cell)
        assert cell.value == result.warm_ndcg.mean()
    assert len(set(line.y)) > 1, "the value changes nothing"


def test_beta_changes_beta_alone(finished: FinishedDataset) -> None:
    run = beta.SWEEP.run(finished.setup, entrant_of(EXPOSURE), 2.0)
    chosen = finished.setup.run(EXPOSURE)
    assert run == finished.setup.run(EXPOSURE, beta=2.0)
    assert beta.SWEEP.run(finished.setup, entrant_of(EXPOSURE), 5.0) == chosen


def test_rankers_believe_what_users_do_not(finished: FinishedDataset) -> None:
    run = examination.run_of(finished.setup, entrant_of("prior"), 0.5)
    assert run.config.believed == Examination(severity=0.5, cutoff=5)
    assert run.config.users == finished.setup.config.users
    assert examination.run_of(finished.setup, entrant_of("prior"), 1.0) == finished.setup.run(
        "prior"
    )


def test_what_rankers_believe_goes_by_the_row_whatever_is_configured(
    finished: FinishedDataset,
) -> None:
    setup, prior = finished.setup, entrant_of("prior")
    config = replace(setup.config, believed=Examination(severity=3.0, cutoff=5))
    wrong = replace(setup, config=config)
    assert examination.run_of(wrong, prior, 1.0).config.believed is None, "the users' own"
    assert examination.run_of(wrong, prior, 3.0).config == config
    measured = replace(setup.config, users=PositionBased(Examination(curve=(1.0, 0.3))))
    for severity in (0.5, 1.0):
        run = examination.run_of(replace(setup, config=measured), prior, severity)
        assert run.config.believed == Examination(severity=severity)
