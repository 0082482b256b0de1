from __future__ import annotations

from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset


def test_a_line_with_the_datasets_figures(finished: FinishedDataset) -> None:
    data = finished.setup.dataset
    (table,) = finished.outcomes["table1"].tables
    (row,) = table.rows
    by_title = dict(zip([column.title for column in table.columns], row.cells, strict=True))
    assert by_title["dataset"] == "mq2007-like×0.02"
    assert by_title["queries"] == Cell(float(len(data.query_ids)), digits=0)
    assert by_title["candidates a query"] == Cell(len(data.labels) / len(data.query_ids), digits=1)
    parts = [int(part) for part in str(by_title["train / vali / test"]).split(" / ")]
    assert parts == [(data.query_splits == split).sum() for split in range(3)]
    assert by_title["labels"] == "0–2"
    assert by_title["sessions of a trial"] == Cell(400.0, digits=0)
