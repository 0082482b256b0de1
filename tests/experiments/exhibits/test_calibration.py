from __future__ import annotations

import numpy as np
import pytest

from ebrank.experiments.exhibits import calibration
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset


@pytest.mark.slow
def test_predictions_beside_what_came_of_them(finished: FinishedDataset) -> None:
    outcome = finished.outcomes["calibration"]
    (figure,), (table,) = outcome.figures, outcome.tables
    assert [panel.title for panel in figure.panels] == ["EBRank", "EBRank (exposure)", "Thompson"]
    trials = finished.results[finished.setup.run("ebrank")].trials
    rows = np.concatenate([t.calibration for t in trials if t.calibration is not None])
    assert len(rows) > 20
    relevance, clicks = figure.panels[0].series
    counts = [row.cells[3] for row in table.rows if row.group == "EBRank"]
    sizes = [cell.value for cell in counts if isinstance(cell, Cell) and cell.value]
    assert sum(sizes) == len(rows)
    assert np.average(relevance.y, weights=sizes) == pytest.approx(rows[:, 4].mean())
    means = rows[:, 0] / (rows[:, 0] + rows[:, 1])
    assert np.average([float(x) for x in relevance.x], weights=sizes) == pytest.approx(means.mean())
    assert relevance.x == clicks.x
    assert all(panel.diagonal and panel.kind == "points" for panel in figure.panels)


@pytest.mark.slow
def test_the_last_row_of_each_ranker_is_the_coverage(finished: FinishedDataset) -> None:
    (table,) = finished.outcomes["calibration"].tables
    for one in calibration.WITH_PRIOR:
        last = [row for row in table.rows if row.group == one.label][-1]
        assert last.cells[0] == "in the 90% interval"
        found = calibration.calibrated(finished.results[finished.setup.run(one.key)])
        assert last.cells[1] == Cell(found.coverage)
