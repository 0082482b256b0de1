"""Tables as HTML: groups of rows and columns, deviations small beside their means.

>>> from ebrank.paper.framework.outcome import Cell, Column, Row, Table
>>> table = Table("t", "Who wins", "", (Column("ranker"), Column("warm")),
...               (Row(("EBRank", Cell(0.859, sd=0.004, best=True, marks="*"))),))
>>> print(html(table, "t").splitlines()[-3])
<tr><th scope="row">EBRank</th><td class="number best">.859<sup style="min-width: 1ch">*</sup> \
<span class="sd" style="min-width: 6ch">± .004</span></td></tr>
"""

from __future__ import annotations

from html import escape

from ebrank.paper.framework.outcome import Cell, Row, Table

FEW_ROWS = 14
"""A table of up to this many rows stays on one printed page."""
LONG = 40
"""Texts longer than this may be wrapped."""


def html(table: Table, identifier: str) -> str:
    """Return a table element with its title for a caption; the page writes its caption below."""
    small = ' class="small"' if len(table.rows) <= FEW_ROWS else ""
    lines = [
        f'<table id="{identifier}"{small}>',
        f'<caption id="{identifier}-caption">{escape(table.title)}</caption>',
        "<thead>",
        *_group_headings(table),
        f"<tr>{''.join(_heading(table, index) for index in range(len(table.columns)))}</tr>",
        "</thead>",
    ]
    for heading, rows in table.blocks:
        lines.append("<tbody>")
        if heading:
            lines.append(
                f'<tr class="heading"><th scope="rowgroup" colspan="{len(table.columns)}">'
                f"<span>{escape(heading)}</span></th></tr>"
            )
        lines += [*(_row(table, row) for row in rows), "</tbody>"]
    return "\n".join([*lines, "</table>"])


def _group_headings(table: Table) -> list[str]:
    if not any(heading for heading, _ in table.spans):
        return []
    cells = (
        f'<th scope="colgroup" colspan="{len(columns)}"{_class("group" if heading else "")}>'
        f"{escape(heading)}</th>"
        for heading, columns in table.spans
    )
    return [f"<tr>{''.join(cells)}</tr>"]


def _heading(table: Table, index: int) -> str:
    kind = _class("number" if index and table.numeric(index) else "")
    return f'<th scope="col"{kind}>{escape(table.columns[index].title)}</th>'


def _row(table: Table, row: Row) -> str:
    first, *others = row.cells
    name = first if isinstance(first, str) else first.text
    cells = [f'<th scope="row">{escape(name)}</th>']
    cells += [_cell(cell, *table.widths(index)) for index, cell in enumerate(others, start=1)]
    return (
        f"<tr{_class('focus' if row.focus else 'apart' if row.apart else '')}>{''.join(cells)}</tr>"
    )


def _cell(cell: Cell | str, marks: int, deviations: int) -> str:
    """Return a cell; marks and deviations take the room of the widest, so that means align."""
    if isinstance(cell, str):
        return f"<td{_class('long' if len(cell) > LONG else '')}>{escape(cell)}</td>"
    text = escape(cell.text)
    if marks:
        text += f'<sup style="min-width: {marks}ch">{escape(cell.marks)}</sup>'
    if deviations:
        spread = f"± {cell.deviation}" if cell.deviation else ""
        text += f' <span class="sd" style="min-width: {deviations + 2}ch">{spread}</span>'
    return f'<td class="number{" best" if cell.best else ""}">{text}</td>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
