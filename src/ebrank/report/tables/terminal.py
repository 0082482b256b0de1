"""Tables for a terminal: the best in bold green, rows set apart dim, wide tables in pieces.

>>> from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
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
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ebrank.experiments.framework.outcome import Row, Table
from ebrank.report.tables.layout import Parts, blocks, numeric, parts, spans, widths

PLUS_MINUS = " ± "
INDENT = "  "
"""Before the names of rows below a heading."""
AROUND = 3
"""Blanks around each column's content; the table has one more."""
READABLE = 24
"""Columns of texts may be folded to this width; those of numbers are never folded."""


def text(table: Table, *, width: int, color: bool = False) -> str:
    """Return a table with title and caption, in lines of at most `width` characters.

    If its numbers do not fit side by side, some columns follow below the others, with the leading
    texts repeated.
    """
    console = Console(
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    first, *rest = (_printed(console, _grid(piece)) for piece in _pieces(table, width))
    title = _printed(console, Text(table.title, style="bold"))
    caption = [_whole_words(table.caption, min(width, 100))] if table.caption else []
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
        title = _heading(table, index)
        numbers = numeric(table, index)
        grid.add_column(
            Text(f"{above}\n{title}" if grouped else title, justify="right" if numbers else "left"),
            no_wrap=numbers,
            min_width=_column_width(table, index),
            overflow="fold",
        )
    rows = zip(*(_padded(table, index) for index in range(len(table.columns))), strict=True)
    for block in blocks(table):
        if block.heading:
            grid.add_row(Text(block.heading, style="italic"))
        for row in block.rows:
            grid.add_row(*_row(row, next(rows), indent=INDENT if block.heading else ""))
        grid.add_section()
    return grid


def _row(row: Row, cells: Sequence[Parts], indent: str) -> list[Text]:
    texts = []
    for index, piece in enumerate(cells):
        value = Text(indent + piece.value if index == 0 else piece.value)
        if piece.best:
            value.stylize("bold green")
        value.append(piece.marks)
        if piece.sd.strip():
            value.append(PLUS_MINUS + piece.sd, style="dim")
        if row.apart:
            value.stylize("dim")
        texts.append(value)
    return texts


def _pieces(table: Table, width: int) -> list[Table]:
    """Return tables that fit into a width, each with the leading columns of texts.

    Columns of one group stay together if they can.
    """
    needed = [_column_width(table, index) + AROUND for index in range(len(table.columns))]
    count = len(needed)
    leading = next((index for index in range(count) if numeric(table, index)), count)
    room = width - 1 - sum(needed[:leading])
    chunks: list[list[int]] = [[]]
    for group in _together(table, leading, needed, room):
        taken = sum(needed[index] for index in chunks[-1] + group)
        if taken > room and chunks[-1]:
            chunks.append([])
        chunks[-1] += group
    return [_columns(table, [*range(leading), *chunk]) for chunk in chunks]


def _column_width(table: Table, index: int) -> int:
    """Return the least width of a column."""
    cells = [_length(piece) for piece in _padded(table, index)]
    title = _title_width(table, index)
    if numeric(table, index):
        return max([*cells, title])
    if index == 0:
        groups = [len(row.group) for row in table.rows]
        cells = [*groups, *(cell + (len(INDENT) if any(groups) else 0) for cell in cells)]
    return max(min(max(cells, default=0), READABLE), title)


def _heading(table: Table, index: int) -> str:
    """Return a column's title in lines no longer than the column is wide."""
    return _whole_words(table.columns[index].title, _column_width(table, index))


def _padded(table: Table, index: int) -> list[Parts]:
    """Return a column's cells in pieces, padded so that numbers, marks and deviations align."""
    column = [parts(row.cells[index]) for row in table.rows]
    if not numeric(table, index):
        return column
    marks, deviations = widths(table)[index]
    after = marks + (len(PLUS_MINUS) + deviations if deviations else 0)
    widest = max(_title_width(table, index) - after, *(len(piece.value) for piece in column))
    return [
        replace(
            piece,
            value=piece.value.rjust(widest),
            marks=piece.marks.ljust(marks),
            sd=piece.sd.rjust(deviations),
        )
        for piece in column
    ]


def _title_width(table: Table, index: int) -> int:
    """Return the longest word of a column's title; a group's heading is above its first column."""
    column = table.columns[index]
    words = [len(word) for word in column.title.split()]
    if index == 0 or table.columns[index - 1].group != column.group:
        words.append(len(column.group))
    return max(words, default=0)


def _together(table: Table, leading: int, needed: Sequence[int], room: int) -> list[list[int]]:
    """Return the columns after the leading ones, in lists that stay together."""
    kept = []
    for span in spans(table.columns[leading:]):
        group = list(range(leading + span.start, leading + span.stop))
        fits = sum(needed[index] for index in group) <= room
        kept += [group] if span.heading and fits else [[index] for index in group]
    return kept


def _columns(table: Table, indices: Sequence[int]) -> Table:
    rows = tuple(
        replace(row, cells=tuple(row.cells[index] for index in indices)) for row in table.rows
    )
    return replace(table, columns=tuple(table.columns[index] for index in indices), rows=rows)


def _length(piece: Parts) -> int:
    return len(piece.value + piece.marks) + (len(PLUS_MINUS + piece.sd) if piece.sd else 0)


def _whole_words(text: str, width: int) -> str:
    """Return a text in lines of this width; a longer word has its own line."""
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
