"""Tables as Markdown, as comma-separated values, and for a terminal; pages have their own template.

>>> from ebrank.paper.framework.display import Cell, Column, Row, Table
>>> rows = (Row(("EBRank", Cell(0.859, sd=0.004, best=True, marks="*")), group="with behavior"),
...         Row(("Oracle", Cell(1.0)), group="with behavior", apart=True))
>>> table = Table("t", "Who wins", "Best in bold.", (Column("ranker"), Column("warm")), rows)
>>> print(markdown(table))
### Who wins
<BLANKLINE>
| ranker | warm |
|---|---:|
| **with behavior** | |
| EBRank | **.859**\\* ± .004 |
| *Oracle* | 1.000 |
<BLANKLINE>
Best in bold.
<BLANKLINE>
>>> print(comma_separated(table), end="")
group,ranker,warm,warm sd,warm marks
with behavior,EBRank,0.859,0.004,*
with behavior,Oracle,1.0,,
>>> print(terminal(table, width=80))
Who wins
  ranker                   warm
 ───────────────────────────────
  with behavior
    EBRank         .859* ± .004
    Oracle        1.000
<BLANKLINE>
Best in bold.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import textwrap
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as Grid
from rich.text import Text

from ebrank.paper.framework.display import Cell, Row, Table

# --- Markdown, as GitHub and most others read it -------------------------------------------------

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>&#|~$])")


def markdown(table: Table) -> str:
    """Return a table with its title and caption; column groups become part of the headings."""
    caption = ["", escaped(table.caption)] if table.caption else []
    return "\n".join([f"### {escaped(table.title)}", "", grid(table), *caption, ""])


def grid(table: Table) -> str:
    """Return the lines of a table, without title and caption."""
    count = len(table.columns)
    lines = [
        _line([escaped(str(column)) for column in table.columns]),
        "|" + "|".join("---:" if table.numeric(index) else "---" for index in range(count)) + "|",
    ]
    for heading, rows in table.blocks:
        if heading:
            lines.append(_line([f"**{escaped(heading)}**"] + [""] * (count - 1)))
        lines += [_line(_cells(row)) for row in rows]
    return "\n".join(lines)


def prose(text: str) -> str:
    """Return a text with its backticks as code and everything else escaped.

    >>> print(prose("run `ebrank *` <now>"))
    run `ebrank *` \\<now\\>
    """
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # a backtick without a partner marks nothing
        return escaped(text)
    plain = (f"`{piece}`" if place % 2 else _escaped(piece) for place, piece in enumerate(pieces))
    return " ".join("".join(plain).split())


def code(text: str) -> str:
    """Return a text as code, even if it has backticks.

    >>> print(code("ebrank report"), code("a`b"))
    `ebrank report` `` a`b ``
    """
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return f"{'`' * (longest + 1)} {text} {'`' * (longest + 1)}" if longest else f"`{text}`"


def escaped(text: str) -> str:
    """Return a text escaped for Markdown, in one line.

    >>> print(escaped("a*b <i>"))
    a\\*b \\<i\\>
    """
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _cells(row: Row) -> list[str]:
    cells = [escaped(cell) if isinstance(cell, str) else _number(cell) for cell in row.cells]
    if row.apart and cells[0]:
        cells[0] = f"*{cells[0]}*"
    return cells


def _number(cell: Cell) -> str:
    """Return a number; letters beside it, which would read as part of it, are superscript."""
    value = f"**{escaped(cell.text)}**" if cell.best else escaped(cell.text)
    marks = f"<sup>{cell.marks}</sup>" if cell.marks.isalpha() else escaped(cell.marks)
    return value + marks + (f" ± {cell.deviation}" if cell.deviation else "")


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


# --- for other programs --------------------------------------------------------------------------


def comma_separated(table: Table) -> str:
    """Return numbers with all digits; deviations, marks and groups, if any, have own columns."""
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


TABLE_FILES = {"md": markdown, "csv": comma_separated}
"""What a report writes for each table, by the ending of the file."""


# --- for a terminal ------------------------------------------------------------------------------

SHORT, LONG = 25, 40
"""Names of rows are broken, between parameters if they are rankers, only if they are longer."""


def terminal(table: Table, *, width: int, color: bool = False) -> str:
    """Return a table in lines of at most `width` characters: the best bold, rows set apart dim.

    If its columns do not fit side by side, some follow below the others, beside the names of rows.
    """
    console = Console(
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    pieces: list[list[int]] = [[]]
    names = next((index for index in range(len(table.columns)) if table.numeric(index)), 1)
    for index in range(names, len(table.columns)):
        together = _grid(table, [*range(names), *pieces[-1], index])
        if pieces[-1] and _least(console, together) > width:
            pieces.append([])
        pieces[-1].append(index)
    shown = [_printed(console, _grid(table, [*range(names), *piece])) for piece in pieces]
    if table.title:
        shown[0] = f"{_printed(console, Text(table.title, style='bold'))}\n{shown[0]}"
    if table.caption:
        shown.append(textwrap.fill(table.caption, min(width, 100), break_on_hyphens=False))
    return "\n\n".join(shown)


def _least(console: Console, what: Grid | Text) -> int:
    """Return the least width that something takes."""
    endless = console.options.update(max_width=sys.maxsize)
    return Measurement.get(console, endless, what).minimum


def _printed(console: Console, what: Grid | Text) -> str:
    with console.capture() as capture:  # too wide rather than without its numbers
        console.print(what, width=max(console.width, _least(console, what)), crop=False)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n")


def _grid(table: Table, columns: Sequence[int]) -> Grid:
    """Return some columns of a table, headings of groups above the first of each."""
    shown = Grid(box=box.SIMPLE, header_style="bold")
    group, headings, widths = "", [], []
    for index in columns:
        column = table.columns[index]
        lines = [line for row in table.rows for line in _text(table, row, index).plain.split("\n")]
        lines += [heading for heading, _ in table.blocks if index == 0]
        least = max(map(len, (*lines, *column.title.split(), "-")))
        above = textwrap.wrap(column.group if column.group != group else "", least)
        headings.append(above + textwrap.wrap(column.title, least))
        widths.append(least)
        group = column.group
    height = max(map(len, headings))
    for index, heading, least in zip(columns, headings, widths, strict=True):
        numeric = table.numeric(index)
        whole = numeric or (index == 0 and least <= LONG)
        shown.add_column(
            "\n" * (height - len(heading)) + "\n".join(heading),
            justify="right" if numeric else "left",
            no_wrap=whole,
            min_width=least if whole else None,
            overflow="fold",
        )
    for name, rows in table.blocks:
        if name:
            shown.add_row(Text(name, "italic"))
        for row in rows:
            shown.add_row(*(_text(table, row, index) for index in columns))
        shown.add_section()
    return shown


def _text(table: Table, row: Row, index: int) -> Text:
    """Return a cell; marks and deviations take the room of the widest, so that means align."""
    cell, style = row.cells[index], "dim" if row.apart else ""
    if isinstance(cell, str):
        indent = "  " if row.group and index == 0 else ""
        if index == 0 and len(cell) > SHORT and "=" in cell:  # a ranker: between its parameters
            cell = cell.replace(",", f",\n{indent}  ")
        return Text(f"{indent}{cell}", style)
    marks, deviations = table.widths(index)
    text = Text(cell.text, "bold green" if cell.best else style)
    text.append(cell.marks.ljust(marks), style)
    spread = f" ± {cell.deviation.rjust(deviations)}" if cell.deviation else ""
    return text.append(spread.ljust(deviations + 3 if deviations else 0), "dim")
