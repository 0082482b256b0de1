from __future__ import annotations

from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset


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
    cell = table.rows[6].cells[1]
    assert isinstance(cell, Cell)
    assert cell.value == plain.cold_ndcg.mean()
