"""What exhibits display: tables, figures and findings as plain values, before drawing.

Exhibits make these, `results.json` keeps them, `ebrank.paper.report` renders them. A table or
figure says what it shows, never how it looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias, get_args

from ebrank.paper.framework.numbers import number


@dataclass(frozen=True)
class Cell:
    """A number of a table.

    Attributes:
        value: None where there is none to show.
        sd: standard deviation over trials.
        digits: after the point.
        best: whether it is the best of its group.
        marks: significance marks or letters.
        signed: whether it is a difference, which also shows a plus.
    """

    value: float | None
    sd: float | None = None
    digits: int = 3
    best: bool = False
    marks: str = ""
    signed: bool = False

    @property
    def text(self) -> str:
        """The number alone: `.859`."""
        return number(self.value, self.digits, signed=self.signed)

    @property
    def deviation(self) -> str:
        """The standard deviation, as many digits as the number; "" if there is none."""
        return "" if self.sd is None or self.value is None else number(self.sd, self.digits)

    def __str__(self) -> str:
        """Return `.859*† ± .004`.

        >>> str(Cell(0.859, 0.004, marks="*†")), str(Cell(None))
        ('.859*† ± .004', '–')
        """
        return self.text + self.marks + (f" ± {self.deviation}" if self.deviation else "")


@dataclass(frozen=True)
class Column:
    """A column; those with the same `group` share a heading."""

    title: str
    group: str = ""

    def __str__(self) -> str:
        """Return the heading in one line, for formats without groups of columns.

        >>> str(Column("cold", "MQ2007"))
        'MQ2007 cold'
        """
        return f"{self.group} {self.title}".strip()


@dataclass(frozen=True)
class Row:
    """One cell per column; texts are plain strings. Rows with the same `group` stay together.

    `apart` sets a row, such as a bound, apart from the rows that are ranked against each other;
    `focus` makes the row that the table is about stand out.
    """

    cells: tuple[Cell | str, ...]
    group: str = ""
    apart: bool = False
    focus: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a name for its files, a title and a caption that explains its marks."""

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        """Raise if a row does not fit the columns."""
        for index, row in enumerate(self.rows):
            if len(row.cells) != len(self.columns):
                sizes = f"{len(row.cells)} cells for {len(self.columns)} columns"
                raise ValueError(f"rows[{index}] has {sizes}")

    @property
    def blocks(self) -> list[tuple[str, list[Row]]]:
        """The rows in their groups, each with its heading, in order."""
        return [(group, list(rows)) for group, rows in groupby(self.rows, lambda row: row.group)]

    @property
    def spans(self) -> list[tuple[str, range]]:
        """The columns in their groups, each with its heading, in order.

        >>> columns = Column("ranker"), Column("cold", "MQ2007"), Column("warm", "MQ2007")
        >>> Table("", "", "", columns, ()).spans
        [('', range(0, 1)), ('MQ2007', range(1, 3))]
        """
        groups = groupby(range(len(self.columns)), lambda index: self.columns[index].group)
        spans = ((group, list(indices)) for group, indices in groups)
        return [(group, range(indices[0], indices[-1] + 1)) for group, indices in spans]

    def numeric(self, column: int) -> bool:
        """Return whether a column holds numbers, which are aligned right."""
        return any(isinstance(row.cells[column], Cell) for row in self.rows)

    def widths(self, column: int) -> tuple[int, int]:
        """Return the most characters of marks and of deviations, so that a column's means align."""
        cells = [cell for row in self.rows if isinstance(cell := row.cells[column], Cell)]
        marks = max((len(cell.marks) for cell in cells), default=0)
        return marks, max((len(cell.deviation) for cell in cells), default=0)


Kind: TypeAlias = Literal["lines", "steps", "bars"]


@dataclass(frozen=True)
class Series:
    """One line, or one set of bars.

    Attributes:
        label: what readers see.
        style: its color and marker; a ranker looks the same in all figures.
        x: positions; for bars, their names.
        y: heights.
        error: half the height of the error bars or bands; () for none.
    """

    label: str
    style: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    error: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Raise if x, y and error do not fit together."""
        if len(self.y) != len(self.x):
            raise ValueError(f"y has {len(self.y)} values for {len(self.x)} of x")
        if len(self.error) not in (0, len(self.y)):
            raise ValueError(f"error has {len(self.error)} values for {len(self.y)} of y")


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        log_x: whether the x axis is logarithmic.
        zero: whether the y axis must begin at 0.
        down: whether the y axis grows downwards, as ranks do.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Kind = "lines"
    log_x: bool = False
    zero: bool = False
    down: bool = False


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with a name for their file, a title and a caption."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]


Verdict: TypeAlias = Literal["confirmed", "undecided", "contradicted"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Effect:
    """How strongly the results support a claim: the larger the value, the more.

    Attributes:
        value: the estimate.
        low, high: the ends of its interval; None where there is too little data for one.
        unit: what is measured, such as "Warm-NDCG".
        digits: after the point.
    """

    value: float
    low: float | None
    high: float | None
    unit: str
    digits: int = 3

    def __str__(self) -> str:
        """Return `+.008 [−.002, +.018]`.

        >>> str(Effect(0.0081, -0.002, 0.0183, "Warm-NDCG")), str(Effect(2.0, None, None, "ranks"))
        ('+.008 [−.002, +.018]', '+2.000')
        """
        value = number(self.value, self.digits, signed=True)
        if self.low is None or self.high is None:
            return value
        low, high = (number(end, self.digits, signed=True) for end in (self.low, self.high))
        return f"{value} [{low}, {high}]"


@dataclass(frozen=True)
class Finding:
    """The check of a claim, the paper's or our own.

    Attributes:
        name: short and stable, such as `ebrank-first-warm`.
        claim: the claim in words.
        verdict: "confirmed" or "contradicted" where the test decides, else "undecided".
        detail: what else decided it, such as the rival and the p-value.
        theme: what the paper says in general; findings of one theme are shown together.
        subject: the ranker or measure that this finding checks, in a word or two.
        ours: whether the claim is our own, not the paper's.
        effect: how strongly the results support it.
    """

    name: str
    claim: str
    verdict: Verdict
    detail: str
    theme: str = ""
    subject: str = ""
    ours: bool = False
    effect: Effect | None = None


@dataclass(frozen=True)
class Display:
    """What one exhibit adds to the report."""

    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()
