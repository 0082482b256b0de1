"""Tables in Markdown, as GitHub and most others read it.

>>> from ebrank.paper.framework.outcome import Cell, Column, Row, Table
>>> rows = (Row(("EBRank", Cell(0.859, sd=0.004, best=True, marks="*")), group="with behavior"),
...         Row(("Oracle", Cell(1.0)), group="with behavior", apart=True))
>>> columns = (Column("ranker"), Column("warm"))
>>> print(markdown(Table("t", "Who wins", "Best in bold.", columns, rows)))
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
"""

from __future__ import annotations

import re

from ebrank.paper.framework.outcome import Cell, Row, Table

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


def _line(cells: list[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
