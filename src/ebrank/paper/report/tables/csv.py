"""Tables as comma-separated values for other programs: numbers with all digits, one per column.

>>> from ebrank.paper.framework.outcome import Cell, Column, Row, Table
>>> table = Table("t", "Who wins", "", (Column("ranker"), Column("warm", "MQ2007")),
...               (Row(("EBRank", Cell(0.859, sd=0.004, marks="*")), group="ours"),))
>>> print(comma_separated(table), end="")
group,ranker,MQ2007 warm,MQ2007 warm sd,MQ2007 warm marks
ours,EBRank,0.859,0.004,*
"""

from __future__ import annotations

import csv
import io

from ebrank.paper.framework.outcome import Cell, Table


def comma_separated(table: Table) -> str:
    """Return a table as CSV. Deviations, marks and groups, if any, have their own columns."""
    columns: list[list[float | str | None]] = []
    if any(row.group for row in table.rows):
        columns.append(["group", *(row.group for row in table.rows)])
    for index, heading in enumerate(map(str, table.columns)):
        cells = [row.cells[index] for row in table.rows]
        numbers = [cell if isinstance(cell, Cell) else Cell(None) for cell in cells]
        columns.append([heading, *(c.value if isinstance(c, Cell) else c for c in cells)])
        if any(cell.sd is not None for cell in numbers):
            columns.append([f"{heading} sd", *(cell.sd for cell in numbers)])
        if any(cell.marks for cell in numbers):
            columns.append([f"{heading} marks", *(cell.marks for cell in numbers)])
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(zip(*columns, strict=True))
    return file.getvalue()
