"""Tables for a terminal: the best in bold and green, rows set apart dim, wide tables in pieces.

>>> from ebrank.experiments.outcome import Cell, Column, Row, Table
>>> rows = (Row(("BM25", Cell(0.47, sd=0.01)), group="without"),
...         Row(("EBRank", Cell(0.859, sd=0.004, best=True, marks="*†")), group="with"))
>>> print(text(Table("t", "Who wins", "", (Column("ranker"), Column("warm")), rows), width=80))
Who wins
  ranker              warm
 ──────────────────────────
  without
    BM25     .470   ± .010
<BLANKLINE>
  with
    EBRank   .859*† ± .004
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ebrank.experiments.outcome import Row, Table
from ebrank.report.tables.folding import INDENT, PLUS_MINUS, column_width, heading, padded, pieces
from ebrank.report.tables.layout import Parts, blocks, numeric, spans


def text(table: Table, *, width: int, color: bool = False) -> str:
    """Return a table with title and caption, in lines of at most `width` characters.

    Where its numbers do not fit side by side, some columns follow below the others, with the
    leading texts repeated.
    """
    console = Console(
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    first, *rest = (_printed(console, _grid(piece)) for piece in pieces(table, width))
    title = _printed(console, Text(table.title, style="bold"))
    caption = [textwrap.fill(table.caption, min(width, 100))] if table.caption else []
    return "\n\n".join([f"{title}\n{first}", *rest, *caption])


def _printed(console: Console, what: Grid | Text) -> str:
    with console.capture() as capture:
        console.print(what)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n")


def _grid(table: Table) -> Grid:
    grid = Grid(box=box.SIMPLE, pad_edge=True, padding=(0, 1), header_style="bold")
    grouped = any(column.group for column in table.columns)
    firsts = {span.start for span in spans(table.columns)}
    for index, column in enumerate(table.columns):
        above = column.group if index in firsts else ""
        title = heading(table, index)
        numbers = numeric(table, index)
        grid.add_column(
            Text(f"{above}\n{title}" if grouped else title, justify="right" if numbers else "left"),
            no_wrap=numbers,
            min_width=column_width(table, index),
            overflow="fold",
        )
    rows = zip(*(padded(table, index) for index in range(len(table.columns))), strict=True)
    for block in blocks(table):
        if block.heading:
            grid.add_row(Text(block.heading, style="italic"))
        for row in block.rows:
            grid.add_row(*_row(row, next(rows), indent=INDENT if block.heading else ""))
        grid.add_section()
    return grid


def _row(row: Row, cells: Sequence[Parts], indent: str) -> list[Text]:
    told = []
    for index, piece in enumerate(cells):
        value = Text(indent + piece.value if index == 0 else piece.value)
        if piece.best:
            value.stylize("bold green")
        value.append(piece.marks)
        if piece.sd.strip():
            value.append(PLUS_MINUS + piece.sd, style="dim")
        if row.apart:
            value.stylize("dim")
        told.append(value)
    return told
