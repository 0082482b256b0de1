"""Tables for a terminal: the best in bold green, rows set apart dim, wide tables in pieces.

>>> from ebrank.paper.framework.outcome import Cell, Column, Row, Table
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

import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ebrank.paper.framework.outcome import Cell, Table

INDENT = "  "
"""Before the names of rows below a heading."""
AROUND = 3
"""Blanks around each column's content; the table has one more."""
READABLE = 24
"""Text columns may be wrapped between words to this width; number columns never are."""
LONGEST = 40
"""Words up to this length are never broken."""


def text(table: Table, *, width: int, color: bool = False) -> str:
    """Return a table with title and caption, in lines of at most `width` characters.

    If its columns do not fit side by side, some follow below the others, with the texts that lead,
    or the first of texts alone, repeated.
    """
    console = Console(
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    columns = [_cells(table, index, LONGEST) for index in range(len(table.columns))]
    needed = [_width(table, index, cells) + AROUND for index, cells in enumerate(columns)]
    leading = next((i for i in range(len(needed)) if table.numeric(i)), 1)
    if leading:  # the names of rows have what the other columns leave
        columns[0] = _cells(table, 0, max(READABLE, width - 1 - AROUND - sum(needed[1:])))
        needed[0] = _width(table, 0, columns[0]) + AROUND
    room = max(1, width - 1 - sum(needed[:leading]))
    pieces: list[list[int]] = [[]]
    for index in range(leading, len(needed)):
        together = [*pieces[-1], index]
        above = zip(together, _above(table, together, room), strict=True)
        if pieces[-1] and sum(max(needed[i], len(group) + AROUND) for i, group in above) > room:
            pieces.append([])
        pieces[-1].append(index)
    first, *rest = (
        _printed(console, _grid(table, [*range(leading), *piece], columns, room, width - 1))
        for piece in pieces
    )
    if table.title:
        first = f"{_printed(console, Text(table.title, style='bold'))}\n{first}"
    caption = [_whole_words(table.caption, min(width, 100))] if table.caption else []
    return "\n\n".join([first, *rest, *caption])


def wrapped(name: str, width: int) -> str:
    """Return a ranker's text in lines of at most this width, wrapped between parameters.

    >>> print(wrapped("ebrank:epsilon=5.0,estimator=exposure", 25))
    ebrank:epsilon=5.0,
      estimator=exposure
    """
    lines = [""]
    for part in re.findall(r"[^:,]+[:,]?|[:,]", name):
        if len(lines[-1] + part) > width and lines[-1].strip():
            lines.append(INDENT)
            part = part.lstrip()
        lines[-1] += part
    return "\n".join(lines)


def _printed(console: Console, what: Grid | Text) -> str:
    with console.capture() as capture:
        console.print(what)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n")


def _cells(table: Table, index: int, room: int) -> list[Text]:
    """Return a column's cells, numbers padded so that means, marks and deviations align.

    Names of rows that are longer than the room for them are wrapped between parameters.
    """
    marks, deviations = table.widths(index)
    after = marks + (len(" ± ") + deviations if deviations else 0)
    values = [_value(row.cells[index]) for row in table.rows]
    widest = max(_title_width(table, index) - after, *map(len, values), 0)
    cells = []
    for row, value in zip(table.rows, values, strict=True):
        cell, style = row.cells[index], "dim" if row.apart else ""
        if isinstance(cell, Cell):
            number = Text(value.rjust(widest), style="bold green" if cell.best else "")
            number.append(cell.marks.ljust(marks))
            spread = f" ± {cell.deviation.rjust(deviations)}" if cell.deviation else ""
            number.append(spread.ljust(after - marks), style="dim")
            number.stylize(style)
        elif table.numeric(index):
            number = Text(value.rjust(widest))
        elif index == 0:
            indent = INDENT if row.group else ""
            number = Text(textwrap.indent(wrapped(value, room - len(indent)), indent), style)
        else:
            number = Text(value, style)
        cells.append(number)
    return cells


def _value(cell: Cell | str) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def _width(table: Table, index: int, cells: Sequence[Text]) -> int:
    """Return the least width of a column; a name of rows needs more than its longest word."""
    lines = _lines(table, index, cells)
    widest = max(map(len, lines), default=0)
    if not table.numeric(index):
        words = (len(word) for line in lines for word in line.split())
        least = min(LONGEST, max(words, default=0) + len(INDENT) * (index == 0))
        widest = min(widest, max(READABLE, least) if index == 0 else least)
    return max(widest, _title_width(table, index))


def _lines(table: Table, index: int, cells: Sequence[Text]) -> list[str]:
    """Return the lines of a column, headings of rows among them."""
    lines = [line for cell in cells for line in cell.plain.splitlines()]
    return lines + [row.group for row in table.rows] if index == 0 else lines


def _shared_out(least: Sequence[int], most: Sequence[int], width: int) -> list[int]:
    """Return widths of columns: all share what the least leaves, none gets more than the most.

    >>> _shared_out([10, 10, 5], [13, 30, 45], 25 + 30), _shared_out([10, 10], [10, 20], 15)
    ([13, 23, 19], [10, 10])
    """
    widths, left = list(least), max(0, width - sum(least))
    modest = sorted(range(len(least)), key=lambda place: most[place] - least[place])
    for done, place in enumerate(modest):
        more = min(most[place] - least[place], left // (len(least) - done))
        widths[place] += more
        left -= more
    return widths


def _title_width(table: Table, index: int) -> int:
    """Return the longest word of a column's title."""
    return max(map(len, table.columns[index].title.split()), default=0)


def _above(table: Table, columns: Sequence[int], room: int) -> list[str]:
    """Return the heading of the group that begins at each column, or ""."""
    groups = [table.columns[index].group for index in columns]
    begins = (group if group != before else "" for before, group in pairwise(["", *groups]))
    return [textwrap.shorten(group, max(1, room - AROUND), placeholder="…") for group in begins]


def _grid(
    table: Table, indices: Sequence[int], columns: Sequence[Sequence[Text]], room: int, width: int
) -> Grid:
    """Return some columns of a table, with their headings and group headings."""
    groups = _above(table, indices, room)
    own = [_width(table, index, columns[index]) for index in indices]
    least = [max(needed, len(above), 1) for needed, above in zip(own, groups, strict=True)]
    most = [
        max(low, len(table.columns[i].title), *map(len, _lines(table, i, columns[i])))
        if not table.numeric(i)
        else low
        for i, low in zip(indices, least, strict=True)
    ]
    widths = _shared_out(least, most, width - AROUND * len(indices))
    grid = Grid(box=box.SIMPLE, pad_edge=True, padding=(0, 1), header_style="bold")
    grouped = any(table.columns[index].group for index in indices)
    shown = []
    for index, above, needed, across in zip(indices, groups, own, widths, strict=True):
        numbers = table.numeric(index)
        title = _whole_words(table.columns[index].title, across)
        heading = Text(
            f"{above}\n{title}" if grouped else title, justify="right" if numbers else "left"
        )
        grid.add_column(
            heading,
            no_wrap=numbers,
            width=None if numbers else across,
            min_width=across,
            overflow="fold",
        )
        shown.append(
            [Text(" " * (across - needed if numbers else 0)) + cell for cell in columns[index]]
        )
    rows = zip(*shown, strict=True)
    for group, block in table.blocks:
        if group:
            grid.add_row(Text(group, style="italic"))
        for _ in block:
            grid.add_row(*next(rows))
        grid.add_section()
    return grid


def _whole_words(text: str, width: int) -> str:
    """Return a text in lines of this width; a longer word has its own line."""
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
