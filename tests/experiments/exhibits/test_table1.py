from __future__ import annotations

from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import Report


def test_a_line_with_the_datasets_figures(report: Report) -> None:
    data = report.setup.dataset
    (table,) = report.outcomes["table1"].tables
    (row,) = table.rows
    told = dict(zip([column.title for column in table.columns], row.cells, strict=True))
    assert told["dataset"] == "mq2007-like×0.02"
    assert told["queries"] == Cell(float(len(data.query_ids)), digits=0)
    assert told["candidates a query"] == Cell(len(data.labels) / len(data.query_ids), digits=1)
    parts = [int(part) for part in str(told["train / vali / test"]).split(" / ")]
    assert parts == [(data.query_splits == split).sum() for split in range(3)]
    assert told["labels"] == "0–2"
    assert told["sessions of a trial"] == Cell(400.0, digits=0)
