"""Tables for lines of a given length: cells padded to align, wide tables cut into pieces."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace

from ebrank.experiments.outcome import Table
from ebrank.report.tables.layout import Parts, numeric, parts, spans, widths

PLUS_MINUS = " ± "
INDENT = "  "
"""Before the names of rows that stand under a heading."""
AROUND = 3
"""Blanks that each column takes besides its content, and one more that the table does."""
READABLE = 24
"""Columns of texts may be folded to this width, those of numbers never."""


def pieces(table: Table, width: int) -> list[Table]:
    """Return tables that fit into a width, each with the leading columns of texts.

    Columns of one group stay together if they can.
    """
    needed = [column_width(table, index) + AROUND for index in range(len(table.columns))]
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


def column_width(table: Table, index: int) -> int:
    """Return the characters that a column cannot do without."""
    cells = [_length(piece) for piece in padded(table, index)]
    title = _title_width(table, index)
    if numeric(table, index):
        return max([*cells, title])
    if index == 0:
        groups = [len(row.group) for row in table.rows]
        cells = [*groups, *(cell + (len(INDENT) if any(groups) else 0) for cell in cells)]
    return max(min(max(cells, default=0), READABLE), title)


def heading(table: Table, index: int) -> str:
    """Return a column's title in lines no longer than the column is wide."""
    return "\n".join(textwrap.wrap(table.columns[index].title, column_width(table, index)))


def padded(table: Table, index: int) -> list[Parts]:
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
    """Return the longest word of a column's title; a group's heading stands above its first."""
    column = table.columns[index]
    words = [len(word) for word in column.title.split()]
    if index == 0 or table.columns[index - 1].group != column.group:
        words.append(len(column.group))
    return max(words, default=0)


def _together(table: Table, leading: int, needed: Sequence[int], room: int) -> list[list[int]]:
    """Return the columns after the leading ones, those in one list to be kept together."""
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
