r"""Tables for LaTeX with the package `booktabs`, as in the paper.

>>> from ebrank.paper.framework.outcome import Cell, Column, Row, Table
>>> table = Table("t", "Who wins", "", (Column("ranker"), Column("warm", "MQ2007")),
...               (Row(("EBRank", Cell(0.859, sd=0.004, best=True, marks="*†"))),))
>>> print(latex(table))
\begin{table}
\centering
\caption{Who wins}
\label{tab:t}
\begin{tabular}{lr}
\toprule
 & \multicolumn{1}{c}{MQ2007} \\
\cmidrule(lr){2-2}
ranker & warm \\
\midrule
EBRank & \textbf{.859}$^{*\dagger}$ {\scriptsize $\pm$ .004} \\
\bottomrule
\end{tabular}
\end{table}
<BLANKLINE>
"""

from __future__ import annotations

import re

from ebrank.paper.framework.outcome import Cell, Row, Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "ᵇ": r"$^{b}$",
    "²": r"$^{2}$",
    "…": r"\ldots{}",
}
_MATHEMATICS = {
    **{"−": "-", "±": r"\pm", "×": r"\times", "·": r"\cdot", "≤": r"\le", "≥": r"\ge"},
    **{"†": r"\dagger", "‡": r"\ddagger", "Σ": r"\Sigma", "→": r"\to", "η": r"\eta"},
    **{"ε": r"\epsilon", "β": r"\beta", "α": r"\alpha", "γ": r"\gamma", "θ": r"\theta"},
    **{"τ": r"\tau", "∈": r"\in", "√": r"\surd", "⌊": r"\lfloor", "⌋": r"\rfloor"},
}
_WRITTEN = (
    _SPECIAL
    | {sign: rf"\{sign}" for sign in "{}$&#%_"}
    | {sign: f"{{{sign}}}" for sign in "[]*"}  # after \\ these would be its argument or variant
    | {sign: f"${command}$" for sign, command in _MATHEMATICS.items()}
)
_MARKS = {"*": "*", "†": r"\dagger", "‡": r"\ddagger"}


def latex(table: Table) -> str:
    """Return a floating table; only text that LaTeX cannot express is lost."""
    count = len(table.columns)
    caption = f"{table.title}. {table.caption}" if table.caption else table.title
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(caption)}}}",
        rf"\label{{tab:{re.sub('[^a-zA-Z0-9-]', '-', table.name)}}}",
        rf"\begin{{tabular}}{{{''.join('lr'[table.numeric(i)] for i in range(count))}}}",
        r"\toprule",
        *_group_headings(table),
        _line([escaped(column.title) for column in table.columns]),
    ]
    for heading, rows in table.blocks:
        lines.append(r"\midrule")
        if heading:
            lines.append(rf"\multicolumn{{{count}}}{{l}}{{\emph{{{escaped(heading)}}}}} \\")
        lines += [_line(_cells(row)) for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def escaped(text: str) -> str:
    r"""Return a text escaped for LaTeX.

    >>> print(escaped("50 % of {x_b}"))
    50 \% of \{x\_b\}
    """
    return "".join(_WRITTEN.get(character, character) for character in " ".join(text.split()))


def _group_headings(table: Table) -> list[str]:
    """Return the line above the columns' titles and the rules under it, if there are groups."""
    cells, rules = [], []
    for heading, columns in table.spans:
        if heading:
            cells.append(rf"\multicolumn{{{len(columns)}}}{{c}}{{{escaped(heading)}}}")
            rules.append(rf"\cmidrule(lr){{{columns.start + 1}-{columns.stop}}}")
        else:
            cells += [""] * len(columns)
    return [_line(cells), "".join(rules)] if rules else []


def _cells(row: Row) -> list[str]:
    cells = [escaped(cell) if isinstance(cell, str) else _number(cell) for cell in row.cells]
    if row.apart and cells[0]:
        cells[0] = rf"\textit{{{cells[0]}}}"
    return cells


def _number(cell: Cell) -> str:
    value = escaped(cell.text)
    if cell.best:
        value = rf"\textbf{{{value}}}"
    if cell.marks:
        marks = "".join(_MARKS.get(mark, escaped(mark)) for mark in cell.marks)
        value += f"$^{{{marks}}}$"
    if cell.deviation:
        value += rf" {{\scriptsize $\pm$ {cell.deviation}}}"
    return value


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
