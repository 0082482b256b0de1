"""β and the wrong examination curve, which vary one value."""

from __future__ import annotations

import pytest

from ebrank.evidence import Examination
from ebrank.experiments.exhibits.extras import beta, examination
from ebrank.experiments.framework.entrants import EXPOSURE, entrant_of
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset


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
