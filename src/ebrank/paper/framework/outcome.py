"""The outcome of an experiment: tables, figures and findings as plain values, before drawing.

Experiments make these, `results.json` keeps them, `ebrank.paper.report` renders them. A table or
figure says what it shows, never how it looks:

>>> table = Table("t", "Who wins", "", (Column("ranker"), Column("warm")),
...               (Row(("EBRank", Cell(0.859, sd=0.004, best=True, marks="*")), group="ours"),))
>>> from_plain(Table, to_plain(table)) == table
True
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import msgspec

from ebrank.errors import DataError
from ebrank.paper.framework.figures import Figure
from ebrank.paper.framework.numbers import number

T = TypeVar("T")


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
        border: what the value must exceed for the claim to be true.
        whole: what 100 % is, so that measures can share a scale; None for a value that is a share.
    """

    value: float
    low: float | None
    high: float | None
    unit: str
    digits: int = 3
    border: float = 0.0
    whole: float | None = None

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
class Outcome:
    """What one experiment adds to the report."""

    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()


def to_plain(value: object) -> Any:  # noqa: ANN401 (whatever JSON has)
    """Return values, alone or in tuples, lists and dicts, as plain objects for JSON."""
    return msgspec.to_builtins(value)


def from_plain(kind: type[T], plain: object) -> T:
    """Return a value from the plain objects that `to_plain` made.

    >>> from_plain(Table, to_plain(Table("t", "", "", (), ())) | {"rows": [{}]})
    Traceback (most recent call last):
    ebrank.errors.DataError: not a Table: Object missing required field `cells` - at `$.rows[0]`
    """
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as problem:
        raise DataError(f"not a {kind.__name__}: {problem}") from None
