r"""Tables for LaTeX with the package `booktabs`, as in the paper.

>>> from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
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

from ebrank.experiments.framework.outcome import Row, Table
from ebrank.report.tables.layout import Block, Parts, blocks, numeric, parts, spans

_WRITTEN = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after \\ a bracket would be its argument, and a star its variant
    "]": "{]}",
    "*": "{*}",
    "–": "--",
    "−": r"$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "Σ": r"$\Sigma$",
    "→": r"$\to$",
    "η": r"$\eta$",
    "ε": r"$\epsilon$",
    "β": r"$\beta$",
    "α": r"$\alpha$",
    "γ": r"$\gamma$",
    "θ": r"$\theta$",
    "τ": r"$\tau$",
    "∈": r"$\in$",
    "√": r"$\surd$",
    "ᵇ": r"$^{b}$",
    "²": r"$^{2}$",
    "…": r"\ldots{}",
    "⌊": r"$\lfloor$",
    "⌋": r"$\rfloor$",
}
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
        rf"\begin{{tabular}}{{{''.join('lr'[numeric(table, i)] for i in range(count))}}}",
        r"\toprule",
        *_group_headings(table),
        _line([escaped(column.title) for column in table.columns]),
    ]
    for block in blocks(table):
        lines += [r"\midrule", *_block(block, count)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def escaped(text: str) -> str:
    r"""Return a text escaped for LaTeX.

    >>> print(escaped("50 % of {x_b}"))
    50 \% of \{x\_b\}
    """
    return "".join(_WRITTEN.get(character, character) for character in " ".join(text.split()))


def _group_headings(table: Table) -> list[str]:
    """Return the line above the columns' titles and the rules under it, if there are groups."""
    groups = spans(table.columns)
    if not any(span.heading for span in groups):
        return []
    cells, rules = [], []
    for span in groups:
        width = span.stop - span.start
        if span.heading:
            cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escaped(span.heading)}}}")
            rules.append(rf"\cmidrule(lr){{{span.start + 1}-{span.stop}}}")
        else:
            cells += [""] * width
    return [_line(cells), "".join(rules)]


def _block(block: Block, count: int) -> list[str]:
    lines = []
    if block.heading:
        heading = escaped(block.heading)
        lines.append(rf"\multicolumn{{{count}}}{{l}}{{\emph{{{heading}}}}} \\")
    return lines + [_line(_cells(row)) for row in block.rows]


def _cells(row: Row) -> list[str]:
    cells = [_cell(parts(cell)) for cell in row.cells]
    if row.apart and cells[0]:
        cells[0] = rf"\textit{{{cells[0]}}}"
    return cells


def _cell(piece: Parts) -> str:
    value = escaped(piece.value)
    if piece.best:
        value = rf"\textbf{{{value}}}"
    if piece.marks:
        marks = "".join(_MARKS.get(mark, escaped(mark)) for mark in piece.marks)
        value += f"$^{{{marks}}}$"
    if piece.sd:
        value += rf" {{\scriptsize $\pm$ {piece.sd}}}"
    return value


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
