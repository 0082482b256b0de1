"""Tables as comma-separated values for other programs: numbers with all digits, one per column.

>>> from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
>>> table = Table("t", "Who wins", "", (Column("ranker"), Column("warm", "MQ2007")),
...               (Row(("EBRank", Cell(0.859, sd=0.004, marks="*")), group="ours"),))
>>> print(comma_separated(table), end="")
group,ranker,MQ2007 warm,MQ2007 warm sd,MQ2007 warm marks
ours,EBRank,0.859,0.004,*
"""

from __future__ import annotations

import csv
import io

from ebrank.experiments.framework.outcome import Cell, Table
from ebrank.report.tables.layout import flat_heading


def comma_separated(table: Table) -> str:
    """Return a table as CSV. Deviations, marks and groups, if any, have their own columns."""
    grouped = any(row.group for row in table.rows)
    cells = [[row.cells[index] for row in table.rows] for index in range(len(table.columns))]
    columns = [["group", *(row.group for row in table.rows)]] if grouped else []
    for column, values in zip(table.columns, cells, strict=True):
        columns += _columns(flat_heading(column), values)
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(zip(*columns, strict=True))
    return file.getvalue()


def _columns(heading: str, cells: list[Cell | str]) -> list[list[str]]:
    """Return the CSV columns of one column of a table, each with its heading first."""
    numbers = [cell if isinstance(cell, Cell) else None for cell in cells]
    columns = [[heading, *(c if isinstance(c, str) else _plain(c.value) for c in cells)]]
    if any(cell is not None and cell.sd is not None for cell in numbers):
        columns.append([f"{heading} sd", *(_plain(cell.sd) if cell else "" for cell in numbers)])
    if any(cell is not None and cell.marks for cell in numbers):
        columns.append([f"{heading} marks", *(cell.marks if cell else "" for cell in numbers)])
    return columns


def _plain(value: float | None) -> str:
    return "" if value is None else repr(value)
