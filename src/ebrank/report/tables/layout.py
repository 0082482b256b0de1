"""What all renderings of a table share: its groups of rows and columns, and the parts of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ebrank.experiments.framework.numbers import number
from ebrank.experiments.framework.outcome import Cell, Column, Row, Table


@dataclass(frozen=True)
class Block:
    """Rows that follow each other and share a heading."""

    heading: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Span:
    """Columns that follow each other under one heading; "" for none. `stop` is exclusive."""

    heading: str
    start: int
    stop: int


@dataclass(frozen=True)
class Parts:
    """A cell in pieces: `.859`, `*†`, `.004`. A text is all in `value`."""

    value: str
    marks: str = ""
    sd: str = ""
    best: bool = False
    numeric: bool = True

    def __str__(self) -> str:
        """Return `.859*† ± .004`.

        >>> str(Parts(".859", "*", ".004")), str(Parts("EBRank"))
        ('.859* ± .004', 'EBRank')
        """
        return self.value + self.marks + (f" ± {self.sd}" if self.sd else "")


def blocks(table: Table) -> list[Block]:
    """Return the rows in their groups, in order."""
    runs = groupby(table.rows, key=lambda row: row.group)
    return [Block(heading, tuple(rows)) for heading, rows in runs]


def spans(columns: Sequence[Column]) -> list[Span]:
    """Return the columns in their groups, in order.

    >>> spans([Column("ranker"), Column("cold", "MQ2007"), Column("warm", "MQ2007")])
    [Span(heading='', start=0, stop=1), Span(heading='MQ2007', start=1, stop=3)]
    """
    groups, start = [], 0
    for heading, run in groupby(columns, key=lambda column: column.group):
        stop = start + len(list(run))
        groups.append(Span(heading, start, stop))
        start = stop
    return groups


def parts(cell: Cell | str) -> Parts:
    """Return a cell in pieces."""
    if isinstance(cell, str):
        return Parts(cell, numeric=False)
    sd = "" if cell.sd is None or cell.value is None else number(cell.sd, cell.digits)
    value = number(cell.value, cell.digits, signed=cell.signed)
    return Parts(value, cell.marks, sd, cell.best)


def numeric(table: Table, column: int) -> bool:
    """Return whether a column holds numbers, which are aligned right."""
    return any(isinstance(row.cells[column], Cell) for row in table.rows)


def widths(table: Table) -> list[tuple[int, int]]:
    """Return the most characters of marks and of deviations in each column, so that means align."""
    columns = [
        [parts(row.cells[place]) for row in table.rows] for place in range(len(table.columns))
    ]
    return [
        (
            max((len(piece.marks) for piece in column), default=0),
            max((len(piece.sd) for piece in column), default=0),
        )
        for column in columns
    ]


def flat_heading(column: Column) -> str:
    """Return a column's heading in one line, for formats without groups of columns.

    >>> flat_heading(Column("cold", "MQ2007"))
    'MQ2007 cold'
    """
    return f"{column.group} {column.title}".strip()
