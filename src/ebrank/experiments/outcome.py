"""What an experiment comes to: tables and figures as plain values, before anybody draws them.

Experiments make these, `results.json` keeps them, `ebrank.report` renders them. A table or figure
says what it shows, never how it looks:

>>> table = Table("t", "Who wins", "", (Column("ranker"), Column("warm")),
...               (Row(("EBRank", Cell(0.859, sd=0.004, best=True, marks="*")), group="ours"),))
>>> read(Table, written(table)) == table
True
"""

from __future__ import annotations

import dataclasses
import types
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from ebrank.errors import DataError

T = TypeVar("T")
SHORT = 60
"""Longer values are not repeated in an error."""


@dataclass(frozen=True)
class Cell:
    """A number of a table.

    Attributes:
        value: None where there is none to show.
        sd: standard deviation over trials.
        digits: after the point.
        best: whether it is the best of its group.
        marks: significance marks or letters.
        signed: whether it is a difference, whose plus is written too.
    """

    value: float | None
    sd: float | None = None
    digits: int = 3
    best: bool = False
    marks: str = ""
    signed: bool = False


@dataclass(frozen=True)
class Column:
    """A column; those with the same `group` stand under one heading."""

    title: str
    group: str = ""


@dataclass(frozen=True)
class Row:
    """One cell per column; texts are plain strings. Rows with the same `group` stay together.

    `apart` sets a row off from those that are ranked against each other, as bounds are.
    """

    cells: tuple[Cell | str, ...]
    group: str = ""
    apart: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a name for its files, a title and a caption that explains its marks."""

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        """Refuse rows that do not fit the columns."""
        for place, row in enumerate(self.rows):
            if len(row.cells) != len(self.columns):
                found = f"{len(row.cells)} cells for {len(self.columns)} columns"
                raise ValueError(f"rows[{place}]: {found}")


Kind: TypeAlias = Literal["lines", "steps", "bars", "points"]


@dataclass(frozen=True)
class Series:
    """One line, or one set of bars or points.

    Attributes:
        label: what readers see.
        style: whose color and marker it has: the same ranker looks the same in all figures.
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
        """Refuse heights without a position, and errors without a height."""
        if len(self.y) != len(self.x):
            raise ValueError(f"y: {len(self.y)} values for {len(self.x)} of x")
        if len(self.error) not in (0, len(self.y)):
            raise ValueError(f"error: {len(self.error)} values for {len(self.y)} of y")


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        diagonal: whether to draw the line y = x, where a perfect prediction lies.
        log_x: whether equal ratios of x are equal distances.
        zero: whether the y axis must begin at 0.
        down: whether the y axis grows downwards, as ranks do.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Kind = "lines"
    diagonal: bool = False
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


@dataclass(frozen=True)
class Finding:
    """Something the paper says, checked.

    Attributes:
        name: short and stable, such as `ebrank-first-warm`.
        claim: the paper's claim in words.
        holds: whether it holds here.
        detail: the figures it was decided by.
        theme: what the paper says in general; findings of one theme are told together.
        subject: for whom or what this one checks it, in a word or two.
    """

    name: str
    claim: str
    holds: bool
    detail: str
    theme: str = ""
    subject: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one experiment adds to the report."""

    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()


def written(value: object) -> Any:  # noqa: ANN401 (whatever JSON has)
    """Return a value of this module as plain objects for JSON."""
    if dataclasses.is_dataclass(value):
        return {f.name: written(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: written(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [written(item) for item in value]
    return value


def read(kind: type[T], plain: object) -> T:
    """Return what `written` wrote of this kind; where it is something else, say in which field.

    >>> read(Table, written(Table("t", "", "", (), ())) | {"rows": [{}]})
    Traceback (most recent call last):
    ebrank.errors.DataError: not a Table: rows[0].cells is missing
    """
    try:
        return _read(kind, plain, "")  # type: ignore[no-any-return]
    except ValueError as problem:
        raise DataError(f"not a {kind.__name__}: {problem}") from problem


def _read(kind: Any, plain: Any, where: str) -> Any:  # noqa: ANN401 (a type, and what JSON has)
    """Return a value of a kind; `where` is the field it stands in.

    Raises:
        ValueError: naming the field.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, _checked(dict, plain, where), where)
    if kind is Any:
        return plain
    if origin is dict:
        items = _checked(dict, plain, where).items()
        return {name: _read(inner[1], item, f"{where}.{name}") for name, item in items}
    if origin is tuple:
        places = enumerate(_checked(list, plain, where))
        return tuple(_read(inner[0], item, f"{where}[{place}]") for place, item in places)
    if origin is Literal:
        if plain not in inner:
            raise ValueError(f"{where}: {plain!r} is none of {inner}")
        return plain
    if origin in (Union, types.UnionType):
        return _read_union(inner, plain, where)
    if kind is float and isinstance(plain, int) and not isinstance(plain, bool):
        return float(plain)
    return _checked(kind, plain, where)


def _checked(kind: type, plain: Any, where: str) -> Any:  # noqa: ANN401
    if not isinstance(plain, kind) or (isinstance(plain, bool) and kind is not bool):
        told = repr(plain) if len(repr(plain)) < SHORT else f"a {type(plain).__name__}"
        raise ValueError(f"{where}: {told} is no {kind.__name__}".removeprefix(": "))
    return plain


def _read_dataclass(kind: Any, plain: dict[str, Any], where: str) -> Any:  # noqa: ANN401
    hints, path = get_type_hints(kind), f"{where}." if where else ""
    for name in plain.keys() - hints.keys():
        raise ValueError(f"{path}{name} is unknown")
    for field in dataclasses.fields(kind):
        if field.name not in plain and field.default is dataclasses.MISSING:
            raise ValueError(f"{path}{field.name} is missing")
    values = {name: _read(hints[name], item, f"{path}{name}") for name, item in plain.items()}
    try:
        return kind(**values)
    except ValueError as problem:  # its parts do not fit together
        raise ValueError(f"{path}{problem}") from None


def _read_union(kinds: tuple[Any, ...], plain: Any, where: str) -> Any:  # noqa: ANN401
    """Return a value of the first kind that it is of; else tell why it is not what it seems."""
    problem = ValueError(f"{where}: null is not allowed")
    for kind in kinds:
        if kind is type(None):
            if plain is None:
                return None
            continue
        try:
            return _read(kind, plain, where)
        except ValueError as found:
            if not isinstance(plain, dict) or dataclasses.is_dataclass(kind):
                problem = found
    raise problem
