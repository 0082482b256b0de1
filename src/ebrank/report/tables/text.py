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
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ebrank.experiments.outcome import Row, Table
from ebrank.report.tables.layout import Parts, blocks, numeric, parts, spans, widths

_BETWEEN = 2
"""Blanks between columns."""
_PLUS_MINUS = " ± "
_READABLE = 24
"""Columns of texts may be folded to this width, those of numbers never."""


def text(table: Table, *, width: int, color: bool = False) -> str:
    """Return a table with title and caption, in lines of at most `width` characters.

    Where its numbers do not fit side by side, some columns follow below the others, with the
    leading texts repeated; columns of one group stay together if they can.
    """
    pieces = [_printed(piece, width, color) for piece in _pieces(table, width)]
    title = _styled(table.title, "bold", color)
    return "\n\n".join([f"{title}\n{pieces[0]}", *pieces[1:], *_caption(table, width)])


def _caption(table: Table, width: int) -> list[str]:
    return [textwrap.fill(table.caption, min(width, 100))] if table.caption else []


def _styled(words: str, style: str, color: bool) -> str:
    console = Console(
        force_terminal=color, color_system="standard" if color else None, width=10_000
    )
    with console.capture() as capture:
        console.print(Text(words, style=style), end="")
    return capture.get()


def _pieces(table: Table, width: int) -> list[Table]:
    """Return tables that fit into a width, each with the leading columns of texts."""
    count = len(table.columns)
    leading = next((index for index in range(count) if numeric(table, index)), count)
    room = width - sum(_least_width(table, index) for index in range(leading))
    chunks: list[list[int]] = [[]]
    for group in _together(table, leading, room):
        taken = sum(_least_width(table, index) for index in chunks[-1] + group)
        if taken > room and chunks[-1]:
            chunks.append([])
        chunks[-1] += group
    return [_columns(table, [*range(leading), *chunk]) for chunk in chunks]


def _together(table: Table, leading: int, room: int) -> list[list[int]]:
    """Return the columns after the leading ones, those in one list to be kept together."""
    kept = []
    for span in spans(table.columns[leading:]):
        group = list(range(leading + span.start, leading + span.stop))
        fits = sum(_least_width(table, index) for index in group) <= room
        kept += [group] if span.heading and fits else [[index] for index in group]
    return kept


def _least_width(table: Table, index: int) -> int:
    """Return the characters a column cannot do without, and the blanks beside it."""
    cells = [str(parts(row.cells[index])) for row in table.rows]
    widest = max(map(len, [*cells, *table.columns[index].title.split()]), default=0)
    if index == 0:
        widest = max([widest, *(len(row.group) for row in table.rows)]) + _BETWEEN
    return (widest if numeric(table, index) else min(widest, _READABLE)) + _BETWEEN


def _columns(table: Table, indices: Sequence[int]) -> Table:
    rows = tuple(
        replace(row, cells=tuple(row.cells[index] for index in indices)) for row in table.rows
    )
    return replace(table, columns=tuple(table.columns[index] for index in indices), rows=rows)


def _printed(table: Table, width: int, color: bool) -> str:
    console = Console(
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        console.print(_grid(table))
    return "\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n")


def _grid(table: Table) -> Grid:
    grid = Grid(box=box.SIMPLE, pad_edge=True, padding=(0, 1), header_style="bold")
    grouped = any(column.group for column in table.columns)
    firsts = {span.start for span in spans(table.columns)}
    for index, column in enumerate(table.columns):
        above = column.group if index in firsts else ""
        grid.add_column(
            Text(
                f"{above}\n{column.title}" if grouped else column.title,
                justify="right" if numeric(table, index) else "left",
            ),
            no_wrap=numeric(table, index),
            overflow="fold",
        )
    padded = _padded(table)
    for block in blocks(table):
        if block.heading:
            grid.add_row(Text(block.heading, style="italic"))
        for row in block.rows:
            grid.add_row(*_row(row, next(padded), indent="  " if block.heading else ""))
        grid.add_section()
    return grid


def _row(row: Row, pieces: Sequence[Parts], indent: str) -> list[Text]:
    cells = []
    for index, piece in enumerate(pieces):
        value = Text(indent + piece.value if index == 0 else piece.value)
        if piece.best:
            value.stylize("bold green")
        value.append(piece.marks)
        if piece.sd.strip():
            value.append(_PLUS_MINUS + piece.sd, style="dim")
        if row.apart:
            value.stylize("dim")
        cells.append(value)
    return cells


def _padded(table: Table) -> Iterator[tuple[Parts, ...]]:
    """Yield the rows' cells in pieces, padded so that points, marks and deviations align."""
    columns = []
    for index, (column, width) in enumerate(zip(table.columns, widths(table), strict=True)):
        pieces = [parts(row.cells[index]) for row in table.rows]
        title = max(map(len, column.title.split()), default=0)
        columns.append(_aligned(pieces, title, *width) if numeric(table, index) else pieces)
    return zip(*columns, strict=True)


def _aligned(column: list[Parts], title: int, marks: int, deviations: int) -> list[Parts]:
    after = marks + (len(_PLUS_MINUS) + deviations if deviations else 0)
    widest = max(title - after, *(len(piece.value) for piece in column))
    return [
        replace(
            piece,
            value=piece.value.rjust(widest),
            marks=piece.marks.ljust(marks),
            sd=piece.sd.rjust(deviations),
        )
        for piece in column
    ]
